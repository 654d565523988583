/** Facts about a job that several parts of the page need. */

import type { AttemptView, JobView } from "../../api/types";
import { call, type Command } from "../../format";

const LIVE: readonly string[] = ["scheduled", "starting", "running", "suspended", "finishing", "lost"];

export const attemptsOf = (job: JobView): AttemptView[] => (Array.isArray(job.attempts) ? job.attempts : []);
/** An attempt is under way, so more output may come. */
export const isLive = (job: JobView): boolean => LIVE.includes(job.state);
export const hasEnded = (job: JobView): boolean => ["complete", "failed", "cancelled"].includes(job.state);
/** An exit code or signal that the job itself caused is a reason by itself. */
const OWN: readonly string[] = ["exit", "signal"];

/** First what ended it, then how its process ended: "killed by ann" says more than "TERM". */
export function endOf({ reason, signal, exit_code }: Pick<JobView | AttemptView, "reason" | "signal" | "exit_code">): { cause: string; how: string } {
  const how = signal ? `signal ${signal}` : exit_code ? `exit ${exit_code}` : "";
  const cause = reason && !OWN.includes(reason.code) && reason.message !== how ? reason.message : "";
  return { cause, how };
}
/** A command as typed in a shell. */
export function shellWords(cmd: Command): string {
  if (typeof cmd === "string") return cmd;
  if (!Array.isArray(cmd)) return call(cmd);
  return cmd.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
export const element = (job: JobView): string | null =>
  job.array_id === null || job.array_index === null ? null : `${job.array_id}_${job.array_index}`;
