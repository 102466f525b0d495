"""What has most probably happened to an array that is grossly wrong, each with its evidence."""
