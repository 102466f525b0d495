"""What an error does downstream, and how to protect an analysis against it."""
