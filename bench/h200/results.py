"""results.py: the rows of h200.csv.

    slice,model,setting,figure,value,unit,low,high,asked,met,note,machine

A setting (slice, model, setting) is measured as a whole: its new rows take the place of all its old ones, so that
slices can be measured one at a time. low and high are a 95 % interval. `met` is "yes" or "no" where the whole interval
says so, else "not resolved"; it is empty where nothing is asked. What failed is a row "error", its note the reason.
"""

import csv
import math
import os
import pathlib

COLUMNS = ["slice", "model", "setting", "figure", "value", "unit", "low", "high", "asked", "met", "note", "machine"]
SETTING = ("slice", "model", "setting")


def number(value):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.6g}"
    return str(int(value)) if isinstance(value, (int, float)) and not math.isinf(value) else str(value)


def judge(low, high, asked):
    """asked: "<=1.02", ">=3", "=yes"."""
    relation, target = (asked[:2], asked[2:]) if asked[1] == "=" else (asked[0], asked[1:])
    if relation == "=":
        return "yes" if number(low) == target else "no"
    if low is None or math.isnan(low) or math.isnan(high):
        return "no"
    target = float(target)
    good = (low <= target, high <= target) if relation == "<=" else (low >= target, high >= target)
    return "not resolved" if good[0] != good[1] else "yes" if good[0] else "no"


class Setting:
    """The rows of one setting, while they are made."""

    def __init__(self, slice_name, model, setting):
        self.key = dict(zip(SETTING, (slice_name, model, setting)))
        self.rows = []

    def add(self, figure, value, unit="", asked="", note=""):
        """A value, or (value, low, high)."""
        value, low, high = value if isinstance(value, tuple) else (value, None, None)
        met = ""
        if asked:
            met = judge(value if low is None else low, value if high is None else high, asked)
        self.rows.append(
            {
                **self.key,
                "figure": figure,
                "value": number(value),
                "unit": unit,
                "low": number(low),
                "high": number(high),
                "asked": asked,
                "met": met,
                "note": note,
            }
        )

    def fail(self, why):
        self.add("error", None, note=why)

    def text(self):
        for row in self.rows:
            span = f" [{row['low']}, {row['high']}]" if row["low"] else ""
            asked = f"  {row['asked']}: {row['met']}" if row["asked"] else ""
            note = f"  ({row['note']})" if row["note"] else ""
            yield f"    {row['figure']:<22} {row['value']}{span} {row['unit']}{asked}{note}"


class Table:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.machine = ""
        self.rows = []
        if self.path.exists():
            with open(self.path, newline="") as file:
                self.rows = list(csv.DictReader(file))

    def put(self, setting):
        """Written at once: a run that is cut short keeps what it has."""
        at = self.drop(*setting.key.values())
        self.rows[at:at] = [{**row, "machine": self.machine} for row in setting.rows]
        self.write()

    def drop(self, *key):
        """A setting's rows, where there are some; where they stood."""
        same = [tuple(row[column] for column in SETTING) == key for row in self.rows]
        self.rows = [row for row, is_same in zip(self.rows, same) if not is_same]
        return same.index(True) if True in same else len(self.rows)

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".tmp")
        with open(beside, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        os.replace(beside, self.path)
