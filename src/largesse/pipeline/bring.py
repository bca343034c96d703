"""A log that a run folder is to keep: brought into one Parquet file, batch by batch."""

from __future__ import annotations

from pathlib import Path

from largesse.campaign import Campaign
from largesse.data import CODED, open_batches
from largesse.errors import Problem, refuse
from largesse.io import atomic_file
from largesse.progress import advance, start_stage


def bring_log(campaign: Campaign, target: Path) -> Path:
    """Write the log of a campaign, as its roles say how to read it, to one Parquet file; return the path of that.

    A log that is one already stays where it is.
    """
    import pyarrow.parquet as pq

    source = Path(campaign.log)
    if source.is_file() and source.suffix.lower() in (".parquet", ".pq"):
        return source
    parse, features = campaign.roles.get("parse") or {}, campaign.roles.get("features") or ()
    coded = {campaign.columns[role] for role in CODED if role in campaign.columns} - {*features}
    texts = [name for name, way in parse.items() if way == "text"]
    batches = open_batches(source, what="log", plain=coded, texts=texts)
    if not batches.rows:
        refuse("log", [Problem("it has no rows", "was the export filtered to nothing?")])
    start_stage("reading", batches.rows)
    done = 0
    with atomic_file(target) as part, part.open("wb") as sink, pq.ParquetWriter(sink, batches.schema) as writer:
        for table in batches.read():
            writer.write_table(table)
            done += len(table)
            advance(done / batches.rows)
    return target
