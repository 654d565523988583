import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { paced } from "../src/paced";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("many words at once are one look", async () => {
  let looks = 0;
  const { wake } = paced(500, async () => void (looks += 1));
  for (let n = 0; n < 100; n += 1) wake();
  await vi.advanceTimersByTimeAsync(5000);
  expect(looks).toBe(1);
});

test("a word after a rest is looked at soon", async () => {
  let looks = 0;
  const { wake } = paced(10_000, async () => void (looks += 1));
  await vi.advanceTimersByTimeAsync(60_000);
  wake();
  await vi.advanceTimersByTimeAsync(50);
  expect(looks).toBe(1);
});

test("words without end are looked at once in the pace, and once more after the last", async () => {
  const at: number[] = [];
  const { wake } = paced(500, async () => void at.push(Date.now()));
  for (let n = 0; n < 40; n += 1) {
    wake();
    await vi.advanceTimersByTimeAsync(50);
  }
  await vi.advanceTimersByTimeAsync(2000);
  expect(at.length).toBe(5);
  for (const [n, each] of at.entries()) if (n) expect(each - (at[n - 1] ?? 0)).toBeGreaterThanOrEqual(500);
});

test("what takes long is never done twice at once, and less often", async () => {
  let [looks, inside, most] = [0, 0, 0];
  const { wake } = paced(100, async () => {
    looks += 1;
    inside += 1;
    most = Math.max(most, inside);
    await new Promise((done) => setTimeout(done, 1000));
    inside -= 1;
  });
  for (let n = 0; n < 100; n += 1) {
    wake();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(most).toBe(1);
  expect(looks).toBe(3);
});

test("a look that fails does not end looking", async () => {
  let looks = 0;
  const { wake } = paced(100, async () => {
    looks += 1;
    throw new Error("offline");
  });
  wake();
  await vi.advanceTimersByTimeAsync(1000);
  wake();
  await vi.advanceTimersByTimeAsync(1000);
  expect(looks).toBe(2);
});

test("after the end nothing is looked at", async () => {
  let looks = 0;
  const { wake, stop } = paced(100, async () => void (looks += 1));
  wake();
  stop();
  wake();
  await vi.advanceTimersByTimeAsync(1000);
  expect(looks).toBe(0);
});
