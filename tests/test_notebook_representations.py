"""What a notebook shows of results that are tables: a row for each entry, with text from files escaped."""

import re

import numpy as np

import workbench as wb


def rows_of(shown: str) -> list[list[str]]:
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", shown) if "<td" in row]


def test_a_dataset_has_a_row_for_each_member():
    snapshot = wb.synthetic.cosmic_web(n=8)
    dataset = wb.Dataset({"<T>": wb.Field(np.zeros((2, 3)), metadata={"units": "K"}), "p": snapshot})
    assert rows_of(dataset._repr_html_()) == [["&lt;T&gt;", "2 x 3", "float64", "K", ""], ["p", repr(snapshot), "", "", ""]]


def test_a_catalogue_shows_its_largest_groups():
    count = 30
    catalogue = wb.clusters.Catalogue(np.arange(count), np.arange(count)[::-1] + 20, np.zeros((count, 3)), np.ones(count))
    shown = catalogue._repr_html_()
    assert [row[:2] for row in rows_of(shown)] == [[str(label), str(49 - label)] for label in range(20)]
    assert "the 20 largest of 30" in shown
    assert rows_of(catalogue.chosen(slice(0))._repr_html_()) == []


def test_a_plan_says_in_a_notebook_what_it_prints():
    plan = wb.distributed.plan(10**9, workers=4)
    assert [f"{name + ':':<12}{text}" for name, text in rows_of(plan._repr_html_())] == str(plan).splitlines()
