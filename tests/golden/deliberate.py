"""What today's code does otherwise than a release, on purpose: each with its reason, which the documentation and
the CHANGELOG tell users too. Whatever else differs from the golden files is a mistake."""

from __future__ import annotations

#: (release, where) → why. `where` is how a test names the difference, without the values.
DELIBERATE: dict[tuple[str, str], str] = {
    ("0.1.0", "paths./api/v1/accounting.get.parameters.window.schema.enum"): (
        "windows may be of any length: `hour` and `day` are two words of more"
    ),
    (
        "0.1.0",
        "schemas.AccountRow.properties.asked_s.type",
    ): "what was given was told as asked, and is given_s; null "
    "for hours of which it was not written down what was asked for",
    (
        "0.1.0",
        "schemas.LearningPoint.properties.asked_mem.type",
    ): "what was given was told as asked, and is given_mem; null where nothing was asked for",
    ("0.1.0", "schemas.LearningPoint.properties.asked_time_s.type"): "likewise",
    ("0.1.0", "usage:.hosts"): (
        "a row for each condition and usage, which add up to the window; busy, idle and down: see GET /usage"
    ),
    ("0.1.0", "node usage:.hosts"): "likewise",
}
