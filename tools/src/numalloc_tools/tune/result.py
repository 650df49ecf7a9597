"""The result of a search, for the table, the plot and JSON."""

from dataclasses import dataclass
from statistics import median

from numalloc_tools.launch import Setting
from numalloc_tools.tune.drive import Tuning
from numalloc_tools.tune.journal import as_data
from numalloc_tools.tune.records import CONFIRMATION, RACE, Comparison
from numalloc_tools.tune.why import Finding, Seen
from numalloc_tools.tune.wording import command_line, named


@dataclass(frozen=True)
class Row:
    setting: Setting
    runs: int
    median: float
    peak: float
    comparison: Comparison | None  # relative to the baseline, in the race
    remark: str


@dataclass
class Result:
    tuning: Tuning
    rows: list[Row]
    findings: list[Finding]
    seen: dict[Setting, Seen]

    @property
    def search(self):
        return self.tuning.search


def rows(tuning: Tuning) -> list[Row]:
    """Best first; failed settings have none."""
    search = tuning.search
    found = []
    for setting, by_block in tuning.runs.items():
        values = [values[0] for values in search.records.values.get(setting, {}).values()]
        if not values:  # interrupted before the first run ended
            continue
        compared = None if setting == search.reference else search.records.compared(setting, search.reference, 0, RACE)
        peak = median([run.peak_bytes for run in by_block.values() if run.peak_bytes] or [0])  # 0: not sampled
        found.append(Row(setting, len(by_block), median(values), peak, compared, _remark(tuning, setting)))
    return sorted(found, key=lambda row: row.comparison.difference if row.comparison else 0.0)


def _remark(tuning: Tuning, setting: Setting) -> str:
    search = tuning.search
    if setting in search.fallen:
        return "failed"
    if setting == search.found.chosen:
        return "chosen"
    if setting == search.reference:
        return "the baseline"
    if setting in search.found.front:
        return "on the front"
    if setting in search.beaten:
        return f"behind after {search.beaten[setting]} blocks"
    return "measured again" if setting in search.arms else ""


def as_json(result: Result, files: dict[str, str]) -> dict:
    search, command = result.search, result.tuning.program.command
    chosen = search.found.chosen
    return {
        "program": command,
        "aims": [{"name": aim.name, "unit": aim.unit, "higher": aim.higher} for aim in search.records.aims],
        "verdict": search.found.verdict,
        "baseline": as_data(search.reference),
        "chosen": as_data(chosen) if chosen else None,
        "command": command_line(chosen, command) if chosen else None,
        "front": [{"setting": as_data(one), "command": command_line(one, command)} for one in search.found.front],
        "race": [
            {
                "setting": as_data(row.setting),
                "name": named(row.setting),
                "runs": row.runs,
                "median": row.median,
                "peak_bytes": row.peak,
                "remark": row.remark,
                **_compared(row.comparison),
            }
            for row in result.rows
        ],
        "confirmation": [
            {"setting": as_data(arm), "name": named(arm), "aim": search.records.aims[aim].name, **_compared(search.confirmed(arm, aim=aim))}
            for arm in search.arms
            if arm != search.reference
            for aim in search.aims
        ],
        "level": search.level,
        "why": [
            {
                "counter": one.aim.name,
                "unit": one.aim.unit,
                "chosen": one.ours,
                "baseline": one.theirs,
                "differs": one.differs,
                **_compared(one.comparison),
            }
            for one in result.findings
        ],
        "looked_at": [
            {
                "setting": as_data(setting),
                "huge_bytes": one.huge,
                "fullest_node": one.fullest,
                "on_nodes_without_threads": one.unattended,
                "bytes_by_node": {str(node): held for node, held in sorted(one.pages.items())},
            }
            for setting, one in result.seen.items()
        ],
        "failed": [{"setting": as_data(setting), "reason": reason} for setting, reason in search.fallen.items()],
        "left_out": [{"setting": as_data(setting), "reason": reason} for setting, reason in search.left_out.items()],
        "no_room_for": search.skipped,
        "runs": search.budget.done,
        "seconds": search.budget.spent,
        "files": files,
    }


def _compared(found: Comparison | None) -> dict:
    if found is None:
        return {}
    return {
        "blocks": found.blocks,
        ("ratio" if found.scale.ratios else "difference"): found.ratio(),
        "interval": list(bounds) if (bounds := found.bounds()) else None,
    }


def pairs(tuning: Tuning) -> int:
    """The number of blocks in the final runs."""
    return sum(phase == CONFIRMATION for phase in tuning.search.records.phases.values())
