/** The request of the what-if form, and the field that an error refers to. */

export interface Wish {
  request: string;
  cpus: string;
  mem: string;
  walltime: string;
  queue: string;
  type: string;
}

export const NOTHING: Wish = { request: "", cpus: "", mem: "", walltime: "", queue: "", type: "" };

/** A job as in the input of `rota add`; empty fields get their defaults. */
export function jobOf(wish: Wish): Record<string, unknown> {
  const job: Record<string, unknown> = {};
  if (wish.request.trim()) job["request"] = wish.request.split("\n").map((line) => line.trim()).filter(Boolean);
  if (wish.cpus.trim()) job["cpus"] = Number.isFinite(Number(wish.cpus)) ? Number(wish.cpus) : wish.cpus.trim();
  for (const name of ["mem", "walltime", "queue"] as const) if (wish[name].trim()) job[name] = wish[name].trim();
  if (wish.type.trim()) job["type"] = wish.type.split(",").map((word) => word.trim()).filter(Boolean);
  return job;
}

export interface Fault {
  field: keyof Wish | null;
  text: string;
  hint: string;
  column: number | null; //: in the request, from 1
}

/** "field 'request': expected … at column 12": the field and the column. */
export function faultOf(message: string, hint: string): Fault {
  const found = /^fields? '(\w+)'/.exec(message)?.[1];
  const field = found && found in NOTHING ? (found as keyof Wish) : null;
  const column = /at column (\d+)/.exec(message)?.[1];
  return {
    field,
    text: message.replace(/^field '\w+': /, ""),
    hint,
    column: field === "request" && column ? Number(column) : null,
  };
}
