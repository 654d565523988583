import { describe, expect, it } from "vitest";
import { hours, leftOut, told } from "../src/pages/accounting/amounts";
import { picked, rangeOf } from "../src/pages/accounting/ranges";
import { type AccountRow, OTHERS, csv, stack, totals, whole } from "../src/pages/accounting/sums";

const row = (at: string, user: string, used_s: number, queue = "default"): AccountRow => ({
  at, user, project: "", queue, attempts: 2, jobs: 1, failed: 0, used_s, asked_s: 0, cpu_s: 0, wait_s: 0, given_s: 0, unasked: 0, until: null,
});
const rows = [row("2026-01-01T00:00:00Z", "bob", 10), row("2026-01-01T00:00:00Z", "eve", 30), row("2026-01-03T00:00:00Z", "bob", 50), row("2026-01-03T00:00:00Z", "amy", 1)];

describe("sums of accounting", () => {
  it("are one for everybody, the largest first", () => {
    expect(totals(rows, ["user"], "used_s").map(({ words, used_s }) => [...words, used_s])).toEqual([["bob", 60], ["eve", 30], ["amy", 1]]);
  });
  it("name what has no name", () => expect(totals(rows, ["project"], "jobs")[0]?.words).toEqual(["(none)"]));
  it("lose nothing, whoever they are by", () => {
    for (const by of [["user"], ["queue"], ["user", "queue"]] as const) expect(whole(totals(rows, by, "jobs")).used_s).toBe(91);
  });
  it("have a bar for every window, also where nothing was used", () => {
    const here = rows.map((each) => ({ ...each, at: new Date(each.at.slice(0, 19)).toISOString() })); // midnight in this zone
    const made = stack(here, ["user"], "used_s", { from: Date.parse("2026-01-01T00:00:00"), to: Date.parse("2026-01-04T00:00:00"), window: "day", most: 2 });
    expect(made.windows).toHaveLength(3);
    expect(made.layers).toEqual([{ name: "bob", values: [10, 0, 50] }, { name: "eve", values: [30, 0, 0] }, { name: OTHERS, values: [0, 0, 1] }]);
  });
});

describe("what was asked for", () => {
  const old = { ...row("2026-01-01T00:00:00Z", "bob", 10), asked_s: null, unasked: null };
  const late = { ...row("2026-01-03T00:00:00Z", "bob", 50), asked_s: 3600, unasked: 2 };
  it("is not known where an earlier version did not write it down", () => {
    expect(told("asked_s", whole(totals([old], ["user"], "used_s")))).toBe("not known");
    expect(csv([old], ["user"]).split("\r\n")[1]).toBe("2026-01-01T00:00:00Z,bob,10,0,,0,0,1,2,0");
  });
  it("is a lower bound where a part of it is not known", () => {
    const sum = whole(totals([old, late], ["user"], "used_s"));
    expect([told("asked_s", sum), told("used_s", sum)]).toEqual(["≥ 1", "0.02"]);
    expect(leftOut(sum)).toContain("2 attempts asked for no time");
  });
  it("says nothing else where everything is known", () => expect(leftOut(whole(totals([{ ...late, unasked: 0 }], ["user"], "jobs")))).toBe(""));
});

describe("the CSV file", () => {
  it("has a line for every row, with what it is by", () => {
    const lines = csv(rows, ["user"]).split("\r\n");
    expect(lines).toHaveLength(6);
    expect(lines[1]).toBe("2026-01-01T00:00:00Z,bob,10,0,0,0,0,1,2,0");
  });
  it("has no formulas and no broken lines, whatever somebody is called", () => {
    const line = csv([row("2026-01-01T00:00:00Z", '=1+"x",\n', 1)], ["user"]).slice(csv([], ["user"]).length);
    expect(line.startsWith('2026-01-01T00:00:00Z,"\'=1+""x"",\n",1')).toBe(true);
  });
});

describe("ranges", () => {
  const now = Date.parse("2026-03-10T15:30:00Z");
  it("end with the window of now and are as long as they say", () => {
    expect(rangeOf("7d", now)).toEqual({ from: Date.parse("2026-03-04T00:00:00"), to: Date.parse("2026-03-11T00:00:00"), window: "day" });
    expect(rangeOf("1d", now)).toEqual({ from: Date.parse("2026-03-09T16:00:00Z"), to: Date.parse("2026-03-10T16:00:00Z"), window: "hour" });
  });
  it("include both days that were picked", () => expect(picked("2026-03-01", "2026-03-03")).toMatchObject({ window: "day", to: Date.parse("2026-03-04T00:00:00") }));
  it("are none where the days make no sense", () => {
    expect(picked("2026-03-03", "2026-03-01")).toBeNull();
    expect(picked("x", "2026-03-01")).toBeNull();
  });
});

it("shows hours so that little is not nothing", () => {
  expect([hours(0), hours(10), hours(5400), hours(3600 * 12_345)]).toEqual(["0", "< 0.01", "1.5", "12,345"]);
});
