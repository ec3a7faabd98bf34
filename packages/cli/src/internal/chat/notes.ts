/**
 * Log lines, put aside: written into the middle of a picture they would tear it. Warnings and worse are shown where there
 * is room for them.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HashMap from "effect/HashMap"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"

export interface Notes {
  /** What was logged since the last time. */
  readonly take: () => ReadonlyArray<string>
}

/** Collects log lines in place of the default logger. */
export const withNotes = <A, E, R>(use: (notes: Notes) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>((options) => {
      if (LogLevel.lessThan(options.logLevel, LogLevel.Warning)) return
      // Of calls the rows tell.
      if (!HashMap.has(options.annotations, "toolCallId")) lines.push(lineOf(options))
    })
    return Effect.provide(use({ take: () => lines.splice(0) }), Logger.replace(Logger.defaultLogger, logger))
  })

const lineOf = ({ cause, message }: Logger.Logger.Options<unknown>): string => {
  const [reason] = Cause.prettyErrors(cause)
  const said = (Array.isArray(message) ? message : [message]).map(String)
  return [...said, ...(reason === undefined ? [] : [reason.message])].join(": ")
}
