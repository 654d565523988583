import { describe, expect, it } from "vitest";
import type { StatusView } from "../src/api/types";
import { groupsOf, ordered, pace } from "../src/pages/groups/order";

const status = {
  groups: {
    done: { complete: 50, failed: 2 },
    "batch-10": { ready: 4 },
    "batch-9": { ready: 4 },
    busy: { running: 1, complete: 1 },
  },
  group_rates: { busy: 0.5 },
  group_expected_end: { busy: "2030-01-01T00:00:00Z" },
} as unknown as StatusView;
const groups = groupsOf(status);
const names = (by: Parameters<typeof ordered>[1], search = ""): string[] => ordered(groups, by, search).map((each) => each.name);

describe("groups", () => {
  it("count what has ended, however it did", () => expect(groups.find((each) => each.name === "done")?.done).toBe(52));
  it("know their rate and end only where the manager does", () => {
    expect(groups.find((each) => each.name === "busy")).toMatchObject({ rate: 0.5, expectedEnd: "2030-01-01T00:00:00Z" });
    expect(groups.find((each) => each.name === "done")).toMatchObject({ rate: null, expectedEnd: null });
  });
  it("have no expected end while all that is left is held or blocked", () => {
    const end = "2030-01-01T00:00:00Z";
    const of = (counts: Record<string, number>) =>
      groupsOf({ groups: { it: counts }, group_rates: {}, group_expected_end: { it: end } } as unknown as StatusView)[0]?.expectedEnd;
    expect(of({ held: 45, complete: 5 })).toBeNull();
    expect(of({ blocked: 1, held: 1 })).toBeNull();
    expect(of({ held: 45, running: 1 })).toBe(end);
    expect(of({ blocked: 1, ready: 1 })).toBe(end);
  });
  it("come with what runs first, then what waits, then what is done", () =>
    expect(names("activity")).toEqual(["busy", "batch-9", "batch-10", "done"]));
  it("come with the most failures first", () => expect(names("failed")[0]).toBe("done"));
  it("come with the least done first", () => expect(names("progress").at(-1)).toBe("done"));
  it("are found by a part of their name", () => expect(names("name", "BATCH")).toEqual(["batch-9", "batch-10"]));
});

describe("a rate", () => {
  it("is said in a unit that makes it a number", () => {
    expect(pace(12.4)).toBe("12/s");
    expect(pace(0.5)).toBe("30/min");
    expect(pace(0.001)).toBe("3.6/h");
    expect(pace(null)).toBe("");
  });
});
