"""A chart of steps is XML with a line for each arm, and a thin one for each of several seeds."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tilewright.rl.study.step_chart import step_chart

SPACE = "{http://www.w3.org/2000/svg}"


def lines(text):
    return ElementTree.fromstring(text).findall(f"{SPACE}polyline")


def test_one_seed_is_one_line_and_three_are_four():
    assert len(lines(step_chart("t", {"a": [[0.1, 0.2]]}))) == 1
    assert len(lines(step_chart("t", {"a": [[0.1, 0.2]] * 3, "b": [[0.3]]}))) == 5


def test_unknown_values_and_empty_arms_are_left_out():
    (line,) = lines(step_chart("t", {"a": [[None, 0.5, None, 1.0]], "b": []}))
    assert len(line.attrib["points"].split()) == 2


def test_every_point_lies_inside_of_the_picture():
    for values in ([5.0, -3.0, 0.0], [0.0, 0.0, 0.0], [1e-12, 0.0, 1.0]):
        (line,) = lines(step_chart("t", {"a": [values]}))
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 640
            assert 0 <= y <= 300


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0.68, ["0", "0.2", "0.4", "0.6", "0.8"]),
        (4.74, ["0", "1", "2", "3", "4", "5"]),
        (1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_the_axis_has_round_numbers(most, ticks):
    labels = ElementTree.fromstring(step_chart("t", {"a": [[0.0, most]]})).findall(f"{SPACE}text")
    found = [item.text for item in labels if item.attrib.get("text-anchor") == "end"]
    assert found == ticks


def test_names_are_escaped_and_the_note_is_shown():
    text = step_chart("a < b", {"<arm>": [[1.0]]}, "synthetic verdicts")
    ElementTree.fromstring(text)
    assert "synthetic verdicts" in text
