/**
 * Who asks for something: a refusal names what was called, and what to call instead, as the caller writes it.
 */
import type { SessionError } from "../SessionError.ts"

export interface Caller {
  readonly module: SessionError["module"]
  /** The name of the function, such as `streamReply`. */
  readonly operation: string
}

export const ofSession = (operation: string): Caller => ({ module: "Session", operation })

export const ofRunner = (operation: string): Caller => ({ module: "SessionRunner", operation })

export const nameOf = ({ module, operation }: Caller): string => `${module}.${operation}`

/** Another function of the same module, as it is written. */
export const instead = ({ module }: Caller, operation: string, ...args: ReadonlyArray<string>): string =>
  `${module}.${operation}(${[module === "Session" ? "session" : "id", ...args].join(", ")})`

const isStream = ({ operation }: Caller): boolean => operation.startsWith("stream")

/** Saying something, as it happens if that is how the caller works. */
export const reply = (caller: Caller): string => instead(caller, isStream(caller) ? "streamReply" : "reply", "text")

/** Going on without anything new being said. */
export const goOn = (caller: Caller): string =>
  instead(caller, isStream(caller) ? "streamContinue" : caller.module === "Session" ? "continue" : "resume")
