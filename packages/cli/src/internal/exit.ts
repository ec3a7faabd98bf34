/**
 * How a command ends when it is not simply done.
 */
import * as Data from "effect/Data"

export const codes = { done: 0, failed: 1, wrongUse: 2, waits: 3, interrupted: 130 } as const

/** Ends the command with this code. Everything there is to say has been said. */
export class Exit extends Data.TaggedError("Exit")<{ readonly code: number }> {}

/** Ends the command: `message` goes to stderr, as one or two sentences that say what to do instead. */
export class Refused extends Data.TaggedError("Refused")<{ readonly message: string; readonly code: number }> {}

/** A wrong use of the command. */
export const wrongUse = (message: string): Refused => new Refused({ message, code: codes.wrongUse })

/** A failure of the command. */
export const failed = (message: string): Refused => new Refused({ message, code: codes.failed })
