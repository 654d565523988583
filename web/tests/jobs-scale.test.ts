import { describe, expect, it } from "vitest";
import { drift } from "../src/pages/jobs/anchor";
import { TALLEST, moved, scaleOf, toElement, toList } from "../src/pages/jobs/scale";

const VIEW = 600;
const short = scaleOf(3400, VIEW);
const long = scaleOf(34_000_000, VIEW);
const last = 34_000_000 - VIEW;

describe("a list that fits", () => {
  it("is as tall as its rows", () => expect(short.element).toBe(3400));
  it("is scrolled pixel by pixel", () => {
    expect(toList(short, 1234)).toBe(1234);
    expect(moved(short, 0, 0, 2800)).toBe(2800);
  });
  it("is not scrolled past its end", () => expect(toList(short, 9999)).toBe(3400 - VIEW));
});

describe("a list that is taller than a browser allows", () => {
  it("has an element that every browser can make", () => expect(long.element).toBe(TALLEST));
  it("begins and ends where the bar does", () => {
    expect(toList(long, 0)).toBe(0);
    expect(toList(long, TALLEST - VIEW)).toBe(last);
  });
  it("is in its middle when the bar is", () => expect(toList(long, (TALLEST - VIEW) / 2)).toBeCloseTo(last / 2, 3));
  it("moves by pixels near both ends", () => {
    expect(toList(long, 1000)).toBe(1000);
    expect(toList(long, TALLEST - VIEW - 1000)).toBe(last - 1000);
  });
  it("finds every place again", () => {
    for (const place of [0, 17, 499_999, 500_001, 3_000_000, 17_000_000, 33_400_000, last])
      expect(toList(long, toElement(long, place))).toBeCloseTo(place, 3);
  });
  it("never goes back while the bar goes down", () => {
    let before = -1;
    for (let position = 0; position <= TALLEST - VIEW; position += 9973) {
      const place = toList(long, position);
      expect(place).toBeGreaterThan(before);
      before = place;
    }
  });
  it("moves by the pixels of a wheel in the middle", () => {
    const position = toElement(long, 17_000_000);
    expect(moved(long, 17_000_000, position, position + 120)).toBe(17_000_120);
  });
  it("leaps with the bar", () => expect(moved(long, 0, 0, 3_000_000)).toBe(toList(long, 3_000_000)));
  it("is at its end when the bar can go no further", () => {
    expect(moved(long, last - 5000, TALLEST - VIEW - 10, TALLEST - VIEW)).toBe(last);
    expect(moved(long, 5000, 10, 0)).toBe(0);
  });
});

describe("the row that somebody reads", () => {
  const list = (ids: number[]) => (index: number): number | undefined => ids[index];
  it("is followed when rows are added above it", () => expect(drift(8, 1, list([11, 10, 9, 8, 7]))).toBe(2));
  it("is followed when rows above it are removed", () => expect(drift(7, 2, list([8, 7, 6]))).toBe(-1));
  it("stays where it is when nothing moved", () => expect(drift(8, 1, list([9, 8, 7]))).toBe(0));
  it("is let go when it is gone, or nothing is known", () => {
    expect(drift(8, 1, list([9, 7, 6]))).toBe(0);
    expect(drift(8, 1, list([]))).toBe(0);
  });
});
