/** Talks to the manager's HTTP API. Every error is an `ApiError` with a code, a message and a hint. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

let csrf = "";

export function setCsrf(token: string): void {
  csrf = token;
}

let over: (reason: ApiError) => void = () => undefined;

/** Called when the session has ended: it expired, or was logged out in another tab. */
export function whenOver(listener: (reason: ApiError) => void): void {
  over = listener;
}

export type Query = Record<string, string | number | boolean | readonly string[] | undefined | null>;

export function address(path: string, query: Query = {}): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    if (typeof value === "object") for (const each of value) words.append(name, each);
    else words.append(name, String(value));
  }
  const text = words.toString();
  return `/api/v1${path}${text ? `?${text}` : ""}`;
}

async function failure(response: Response): Promise<ApiError> {
  try {
    const { error } = (await response.json()) as { error: { code: string; message: string; hint: string } };
    return new ApiError(response.status, error.code, error.message, error.hint);
  } catch {
    return new ApiError(response.status, "http", `the gateway answered ${response.status}`, "try again");
  }
}

async function send<T>(method: string, url: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method !== "GET") headers["x-rota-csrf"] = csrf;
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "same-origin",
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "offline", "the manager cannot be reached", "is it running? rota manager start");
  }
  if (!response.ok) {
    const reason = await failure(response);
    if (reason.status === 401) over(reason);
    throw reason;
  }
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

export const get = <T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> =>
  send<T>("GET", address(path, query), undefined, signal);
export const post = <T>(path: string, body?: unknown): Promise<T> => send<T>("POST", address(path), body);
export const put = <T>(path: string, body: unknown, query: Query = {}): Promise<T> =>
  send<T>("PUT", address(path, query), body);
export const patch = <T>(path: string, body: unknown): Promise<T> => send<T>("PATCH", address(path), body);
export const remove = <T>(path: string, query: Query = {}): Promise<T> =>
  send<T>("DELETE", address(path, query), undefined);
