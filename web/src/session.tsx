/** The session of this browser. A link from `rota manager ui` carries a code that becomes a session once. */

import { type ReactNode, createContext, useContext, useEffect, useState } from "react";
import { ApiError, get, post, remove, setCsrf, whenOver } from "./api/client";
import { Command, Skeleton, Trouble } from "./ui/parts";
import { useSay } from "./ui/toasts";

export interface Session {
  user: string;
  role: "user" | "admin";
  version: string;
  deployment: string;
  csrf: string;
  /** It may act on its own jobs only, and read only their output. */
  own_only: boolean;
}

const Here = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(Here);
  if (session === null) throw new Error("nobody has logged in");
  return session;
}

export const useAdmin = (): boolean => useSession().role === "admin";

/** The only user whose jobs this session may act on and read the output of; null: all users. */
export function useOnly(): string | null {
  const { user, own_only } = useSession();
  return own_only ? user : null;
}

export async function leave(): Promise<void> {
  await remove("/session");
  window.location.assign("/");
}

// After a login the page returns to the address that was wanted. The link opens another tab, so all tabs share it.
const WANTED = "rota:wanted";
const WANTED_MS = 10 * 60_000;

function want(): void {
  const { pathname, search } = window.location;
  if (pathname !== "/" && pathname !== "/login") window.localStorage.setItem(WANTED, JSON.stringify([Date.now(), pathname + search]));
}

function wanted(): string {
  const kept = window.localStorage.getItem(WANTED);
  window.localStorage.removeItem(WANTED);
  const [at, place] = kept ? (JSON.parse(kept) as [number, string]) : [0, ""];
  return Date.now() - at < WANTED_MS && /^\/(?!\/)/.test(place) ? place : "/";
}

// The link opens its own tab: tabs that show the login page learn of the login here.
const DOOR = "rota:door";

function tellTheDoor(): void {
  const door = new BroadcastChannel(DOOR);
  door.postMessage("in");
  door.close();
}

function useDoor(waiting: boolean): void {
  useEffect(() => {
    if (!waiting) return;
    const door = new BroadcastChannel(DOOR);
    door.onmessage = () => window.location.reload();
    return () => door.close();
  }, [waiting]);
}

// The code is used once, however often React runs an effect.
let begun: Promise<Begun> | null = null;

interface Begun {
  session: Session;
  /** The link was invalid, but the browser already had a session. */
  stale: boolean;
}

async function begin(): Promise<Begun> {
  const code = window.location.pathname === "/login" ? window.location.hash.slice(1) : "";
  if (code) {
    window.history.replaceState(null, "", "/"); // the code is not kept in the history
    const found = await enter(code);
    window.history.replaceState(null, "", wanted());
    return found;
  }
  return { session: await get<Session>("/session"), stale: false };
}

const TRIES = 5;
const AGAIN_MS = 2000;

/** Log in. When the gateway says to wait, wait and retry: the code is still valid. */
async function redeem(code: string): Promise<Session> {
  for (let tried = 1; ; tried++) {
    try {
      return await post<Session>("/session", { code });
    } catch (refused) {
      if (!(refused instanceof ApiError) || refused.status !== 429 || tried === TRIES) throw refused;
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  }
}

async function enter(code: string): Promise<Begun> {
  try {
    const session = await redeem(code);
    tellTheDoor();
    return { session, stale: false };
  } catch (refused) {
    if (!(refused instanceof ApiError) || refused.status !== 401) throw refused;
    try {
      return { session: await get<Session>("/session"), stale: true };
    } catch {
      throw refused;
    }
  }
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

export function WithSession({ children }: { children: ReactNode }): ReactNode {
  const say = useSay();
  const [session, setSession] = useState<Session | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    let welcome = false;
    whenOver((reason) => {
      want();
      setSession(null);
      // After a login it does not matter whether the cookie is missing or of an earlier manager: the session is over.
      setError(welcome ? new ApiError(401, reason.code, "this session is over", reason.hint) : reason);
    });
    begun ??= begin();
    begun.then(
      ({ session: found, stale }) => {
        welcome = true;
        setCsrf(found.csrf);
        setSession(found);
        if (stale) say("That link was used already or is too old. You are still logged in.");
      },
      (reason: Error) => setError(reason),
    );
  }, [say]);
  useDoor(session === null && error !== null);
  if (session) return <Here.Provider value={session}>{children}</Here.Provider>;
  return (
    <main className="door">
      <img src="/icon.svg" width={48} height={48} alt="" />
      <h1>Rota</h1>
      {error === null ? (
        <Skeleton lines={2} />
      ) : error instanceof ApiError && error.status === 401 ? (
        <>
          <p>{error.code === "unauthorized" && /link|session/.test(error.message) ? sentence(error.message) : "You are not logged in."}</p>
          <p className="muted">Open the dashboard from a terminal on the manager’s machine:</p>
          <Command text="rota manager ui" />
        </>
      ) : (
        <Trouble error={error} />
      )}
    </main>
  );
}
