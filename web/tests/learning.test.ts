import { expect, it } from "vitest";
import { brief } from "../src/pages/learning/shown";
import { type Point, TIMES, dots, range, timeRange, used } from "../src/pages/learning/points";

const point = (more: Partial<Point>): Point => ({
  job: 1, at: "2026-01-01T00:00:00Z", input_bytes: null, asked_mem: 2 ** 30, used_mem: 2 ** 29, asked_time_s: 60, used_time_s: 30, ok: true, most_mem: null, given_mem: 2 ** 31, given_time_s: 300, ...more,
});

it("leaves out jobs that asked for nothing, for they have no place on the axis", () => {
  expect(dots([point({}), point({ asked_mem: null })], "mem", "asked")).toHaveLength(1);
});
it("never takes what was given for what was asked", () => {
  const five = point({ asked_time_s: 5, given_time_s: 300, used_time_s: 4 });
  expect([dots([five], "time", "asked")[0]?.x, dots([five], "time", "given")[0]?.x]).toEqual([5, 300]);
  expect(dots([point({ asked_mem: null })], "mem", "given")).toHaveLength(1);
});
it("shows what used nearly nothing at the least that the axis has", () => {
  expect(dots([point({ used_time_s: 0 })], "time", "asked")[0]?.y).toBeGreaterThan(0);
});
it("gives both axes the same powers around all points", () => {
  expect(range(dots([point({}), point({ asked_mem: 3 * 2 ** 30 })], "mem", "asked"), 2)).toEqual([2 ** 29, 2 ** 32]);
  expect(range(dots([point({ asked_time_s: 1000, used_time_s: 1000 })], "time", "asked"), 10)).toEqual([1000, 10_000]);
});
it("gives times an axis between round times, at which it has its marks", () => {
  expect(timeRange(dots([point({ asked_time_s: 3000, used_time_s: 12 })], "time", "asked"))).toEqual([10, 3600]);
  expect(timeRange(dots([point({ asked_time_s: 60, used_time_s: 60 })], "time", "asked"))).toEqual([60, 600]);
  expect(TIMES.slice(2, 9).map(brief)).toEqual(["1 s", "10 s", "1 m", "10 m", "1 h", "10 h", "1 d"]);
});
it("says how much of what was asked was used", () => {
  expect(used(dots([point({}), point({ used_mem: 2 ** 30 })], "mem", "asked"))).toBe(0.75);
  expect(used([])).toBeNull();
});
it("writes times beside an axis briefly", () => {
  expect([0.1, 10, 100, 1000, 10_000, 200_000].map(brief)).toEqual(["100 ms", "10 s", "1.7 m", "17 m", "2.8 h", "2.3 d"]);
});
