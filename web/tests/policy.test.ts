import { describe, expect, it } from "vitest";
import type { RuleView } from "../src/api/types";
import { periodName } from "../src/pages/policy/calendar_dialog";
import { quotaName } from "../src/pages/policy/quota_dialog";
import { after, moved } from "../src/pages/policy/ranks";
import { bands } from "../src/pages/policy/week";
import { Unclear, fields, limit, listed, news, pairs, seconds, shares, time, whole } from "../src/pages/policy/words";

describe("times that people type", () => {
  it("are seconds in the record", () => {
    expect(seconds("Walltime", "1d 12h")).toBe(129_600);
    expect(seconds("Walltime", "90m")).toBe(5400);
    expect(seconds("Walltime", "  ")).toBeNull();
  });
  it("need a unit, and say so", () => {
    expect(() => seconds("Walltime", "12")).toThrow(Unclear);
    expect(() => seconds("Walltime", "12h x")).toThrow("Walltime: '12h x' is not a time");
  });
  it("are read back as they were written", () => {
    for (const value of [1, 59, 60, 5400, 28_800, 604_800, 129_661]) expect(seconds("", time(value))).toBe(value);
    expect(time(null)).toBe("");
  });
});

it("says of a change only what is different now", () => {
  const before = { priority: "2", walltime: "2h", shares: "" };
  expect(news(before, { priority: "5", walltime: "", shares: "" })).toBe("priority 5, walltime none");
  expect(news(before, { ...before, shares: "a=0.5\nb=0.2\n" })).toBe("shares a=0.5, b=0.2");
  expect(news(before, before)).toBe("as before");
});

describe("words of rules and shares", () => {
  it("are one on each line, with commas between patterns", () => {
    expect(fields("Jobs with", "user=bob,eve\nwalltime_over=12h\n", { patterns: true })).toEqual({ user: ["bob", "eve"], walltime_over: "12h" });
  });
  it("keep the comma of a type", () => {
    expect(fields("Values", "type=timesharing=user,*", { patterns: false })).toEqual({ type: ["timesharing=user,*"] });
  });
  it("are not given twice", () => {
    expect(() => fields("Values", "mem=1G\nmem=2G", { patterns: false })).toThrow("'mem' is given twice");
  });
  it("are shown as they are typed", () => {
    const typed = "user=bob,eve\ninteractive=yes\ntype=a\ntype=b";
    expect(listed({ user: ["bob", "eve"], interactive: true, type: ["a", "b"] }).join("\n")).toBe(typed);
  });
  it("must have a name before the sign", () => {
    expect(() => pairs("Values", "=5")).toThrow("is not NAME=VALUE");
  });
  it("make shares from 0 to 1", () => {
    expect(shares("alice=0.5\nproject:x=0.2")).toEqual({ alice: 0.5, "project:x": 0.2 });
    expect(() => shares("alice=2")).toThrow("is not a share");
    expect(() => shares("alice=")).toThrow("is not a share");
  });
  it("refuse numbers that are not whole", () => {
    expect(whole("Priority", "10")).toBe(10);
    expect(() => whole("Priority", "1.5")).toThrow("is not a whole number");
  });
});

describe("limits of quotas", () => {
  it("are numbers, a part of all, or any", () => {
    expect([limit("", "16"), limit("", "0.5*all"), limit("", ""), limit("", "-1")]).toEqual([16, "0.5*ALL", -1, -1]);
    expect(() => limit("Jobs", "many")).toThrow("Jobs: 'many' is not a limit");
  });
  it("are called by their rule and set, as the manager calls them", () => {
    expect(quotaName({ rule: "*,*,*,/" })).toBe("*,*,*,/");
    expect(quotaName({ rule: "*,*,*,/", set: "day" })).toBe("day: *,*,*,/");
    expect(periodName({ set: "holiday", from: "2026-12-24T00:00", to: "2026-12-27T00:00" })).toBe("2026-12-24T00:00/2026-12-27T00:00: holiday");
  });
});

const rule = (name: string, rank: number): RuleView => ({
  name, rank, position: 1, built_in: false, replaces: false, match: {}, default: null, cap: { walltime: "1h" }, set: null, reject: null,
});

describe("the place of a rule", () => {
  const rules = [rule("a", 100), rule("b", 200), rule("c", 300)];
  it("is between its new neighbours, and no other record changes", () => {
    expect(moved(rules, "c", 1)).toEqual([{ kind: "rule", name: "c", value: { rank: 150, cap: { walltime: "1h" } } }]);
  });
  it("is before the first and after the last at the ends", () => {
    expect(moved(rules, "c", 0)[0]?.value).toMatchObject({ rank: 0 });
    expect(moved(rules, "a", 2)[0]?.value).toMatchObject({ rank: 400 });
    expect(after(rules)).toBe(400);
  });
  it("changes nothing where it is already there", () => {
    expect(moved(rules, "b", 1)).toEqual([]);
  });
  it("is given anew to all where no room is left", () => {
    const tight = [rule("a", 1), rule("b", 1), rule("c", 300)];
    expect(moved(tight, "c", 1).map(({ name, value }) => [name, (value as { rank: number }).rank])).toEqual([["a", 100], ["c", 200], ["b", 300]]);
  });
});

describe("the picture of a week", () => {
  it("has hours on the days that are named", () => {
    expect(bands("08:00-19:00 mon-wed")).toEqual([0, 1, 2].map((day) => ({ day, from: 480, to: 1140 })));
  });
  it("takes hours past midnight to the next day, and Sunday to Monday", () => {
    expect(bands("22:00-06:00 sun")).toEqual([{ day: 6, from: 1320, to: 1440 }, { day: 0, from: 0, to: 360 }]);
  });
  it("has whole days where no hours are named, around the end of the week", () => {
    expect(bands("sat-mon").map((band) => band.day)).toEqual([5, 6, 0]);
    expect(bands("*")).toHaveLength(7);
  });
  it("is empty for what cannot be read", () => {
    expect(bands("08:00 mon")).toEqual([]);
  });
});
