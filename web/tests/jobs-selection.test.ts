import { describe, expect, it } from "vitest";
import type { JobView } from "../src/api/types";
import { rest } from "../src/pages/jobs/bulk";
import { outcome } from "../src/pages/jobs/actions";
import { ranges } from "../src/pages/jobs/ids";
import { type Chosen, EVERYTHING, NOTHING, has, joined, priorityOf, size, stepped, toggled, touchable } from "../src/pages/jobs/selection";

const job = (id: number, priority = 0): JobView => ({ id, state: "ready", priority }) as JobView;

describe("ids in words", () => {
  it("are ranges where they are neighbours", () => expect(ranges([3, 1, 2, 7, 9, 10])).toEqual(["1-3", "7", "9-10"]));
  it("are said once", () => expect(ranges([5, 5])).toEqual(["5"]));
  it("are none when there are none", () => expect(ranges([])).toEqual([]));
  it("are one word for a million neighbours", () =>
    expect(ranges(Array.from({ length: 1_000_000 }, (_, at) => at + 1))).toEqual(["1-1000000"]));
});

describe("a selection", () => {
  it("takes a job and gives it back", () => {
    const one = toggled(NOTHING, job(4));
    expect(has(one, 4)).toBe(true);
    expect(size(toggled(one, job(4)), 100)).toBe(0);
  });
  it("grows by a range, counting each job once", () => expect(size(joined(toggled(NOTHING, job(1)), [job(1), job(2)]), 9)).toBe(2));
  it("of everything is as many as match", () => {
    expect(size(EVERYTHING, 1_000_000)).toBe(1_000_000);
    expect(has(EVERYTHING, 77)).toBe(true);
  });
  it("of everything starts anew with the row that is clicked", () => expect(size(toggled(EVERYTHING, job(3)), 9)).toBe(1));
  it("knows the priority that all had", () => {
    expect(priorityOf(joined(NOTHING, [job(1, 5), job(2, 5)]))).toBe(5);
    expect(priorityOf(joined(NOTHING, [job(1, 5), job(2, 6)]))).toBeNull();
    expect(priorityOf(EVERYTHING)).toBeNull();
  });
});

describe("the row cursor", () => {
  it("starts at the first row", () => expect(stepped("j", -1, 10, 5)).toBe(0));
  it("stays in the table", () => {
    expect(stepped("PageDown", 8, 10, 5)).toBe(9);
    expect(stepped("k", 0, 10, 5)).toBe(0);
  });
  it("goes to both ends", () => {
    expect(stepped("End", 0, 1_000_000, 5)).toBe(999_999);
    expect(stepped("Home", 500, 1_000_000, 5)).toBe(0);
  });
  it("leaves other keys, and an empty table, alone", () => {
    expect(stepped("q", 3, 10, 5)).toBeNull();
    expect(stepped("j", -1, 0, 5)).toBeNull();
  });
});

describe("what came of an action", () => {
  it("says how many were changed, and how many not", () =>
    expect(outcome("hold", { changed: 1200, unchanged: 1, jobs: [], kept: 0, warnings: [] })).toBe("1,200 jobs held; 1 other stayed as it is"));
  it("says how many were kept that were to be removed", () => {
    expect(outcome("remove", { changed: 3, unchanged: 2, jobs: [], kept: 2, warnings: [] })).toBe("3 jobs removed; 2 others kept");
    expect(outcome("remove", { changed: 0, unchanged: 2, jobs: [], kept: 2, warnings: [] })).toContain("they have not ended");
    expect(outcome("remove", { changed: 0, unchanged: 2, jobs: [], kept: 0, warnings: [] })).toContain("gone already");
  });
  it("says why nothing was", () => expect(outcome("release", { changed: 0, unchanged: 3, jobs: [], kept: 0, warnings: [] })).toContain("none of them is held"));
});

it("only one's own jobs are touched where no others may be", () => {
  const { jobs } = joined(NOTHING, [{ ...job(1), user: "ann" }, { ...job(2), user: "bob" }]) as { all: false; jobs: ReadonlyMap<number, Chosen> };
  expect(touchable(jobs, null)).toEqual([1, 2]);
  expect(touchable(jobs, "bob")).toEqual([2]);
});

it("the rest of a selection is accounted for", () => {
  expect(rest("kill", 417, null)).toBe("The other 417 have ended already: they stay as they are.");
  expect(rest("kill", 1, "ann")).toBe("The other one has ended already, or belongs to others: it stays as it is.");
  expect(rest("remove", 2, null)).toBe("The other 2 have not ended, or others wait for them: they stay as they are.");
  expect(rest("kill", 0, null)).toBe("");
});
