/** Ranks of rules: a number between the ranks of the neighbours, so that moving a rule changes one record. */

import type { SiteChange, RuleView } from "../../api/types";

const STEP = 100;

/** The record of the rule, with this rank. */
export function record(rule: RuleView, rank: number): Record<string, unknown> {
  const { match, default: filled, cap, set, reject } = rule;
  return {
    rank,
    ...(Object.keys(match).length ? { match } : {}),
    ...(filled ? { default: filled } : {}),
    ...(cap ? { cap } : {}),
    ...(set ? { set } : {}),
    ...(reject !== null ? { reject } : {}),
  };
}

/** The rank that puts a new rule last. */
export const after = (rules: readonly RuleView[]): number => Math.max(0, ...rules.map((rule) => rule.rank)) + STEP;

/** The changes that put the rule of this name at a position, counted from 0. */
export function moved(rules: readonly RuleView[], name: string, position: number): SiteChange[] {
  const rule = rules.find((each) => each.name === name);
  if (!rule) return [];
  const others = rules.filter((each) => each !== rule);
  const at = Math.max(0, Math.min(position, others.length));
  if (rules.indexOf(rule) === at) return [];
  const next = others[at]?.rank;
  const low = others[at - 1]?.rank ?? (next ?? 0) - 2 * STEP;
  const high = next ?? low + 2 * STEP;
  const rank = (low + high) / 2;
  if (low < rank && rank < high) return [{ kind: "rule", name, value: record(rule, rank) }];
  // No number is left between the two: all rules get new ranks.
  others.splice(at, 0, rule);
  return others.map((each, place) => ({ kind: "rule", name: each.name, value: record(each, STEP * (place + 1)) }));
}
