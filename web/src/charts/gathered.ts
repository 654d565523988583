/** Sums of neighbours, to smooth a line of many values. */
export function gathered(values: readonly number[], by: number): number[] {
  const sums: number[] = [];
  for (let at = 0; at < values.length; at += by) sums.push(values.slice(at, at + by).reduce((sum, each) => sum + each, 0));
  return sums;
}
