/**
 * Listens to the log of an effect on all levels, while the loggers of the person get what they would have got.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as HashMap from "effect/HashMap"
import * as HashSet from "effect/HashSet"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import { short, textOf } from "./notes.ts"

/** A line of the log, as far as it is of interest later. */
export interface Line {
  readonly at: number
  readonly level: string
  readonly message: string
  readonly toolCallId: string | undefined
  readonly toolName: string | undefined
}

// Known by its identity: a handler that asks for all levels by itself means the person's loggers too.
const everything: LogLevel.LogLevel = { ...LogLevel.All }

/** Gives an effect that is heard. What it is to be heard of is looked up once, where this runs. */
export const listening = (
  onLine: (line: Line) => void
): Effect.Effect<<A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>> =>
  Effect.gen(function*() {
    const loggers = yield* FiberRef.get(FiberRef.currentLoggers)
    const minimum = yield* FiberRef.get(FiberRef.currentMinimumLogLevel)
    const all = HashSet.add(
      HashSet.map(loggers, (logger) => fromLevel(logger, minimum)),
      Logger.make<unknown, void>((options) => onLine(lineOf(options)))
    )
    return (effect) =>
      effect.pipe(
        Effect.locally(FiberRef.currentLoggers, all),
        Effect.locally(FiberRef.currentMinimumLogLevel, everything)
      )
  })

const fromLevel = (
  logger: Logger.Logger<unknown, unknown>,
  outer: LogLevel.LogLevel
): Logger.Logger<unknown, unknown> =>
  Logger.make((options) => {
    const current = FiberRefs.getOrDefault(options.context, FiberRef.currentMinimumLogLevel)
    const minimum = current === everything ? outer : current
    return LogLevel.greaterThanEqual(options.logLevel, minimum) ? logger.log(options) : undefined
  })

const lineOf = (options: Logger.Logger.Options<unknown>): Line => ({
  at: options.date.getTime(),
  level: options.logLevel.label,
  message: messageOf(options),
  toolCallId: annotation(options, "toolCallId"),
  toolName: annotation(options, "toolName")
})

const messageOf = ({ cause, message }: Logger.Logger.Options<unknown>): string => {
  const said = (Array.isArray(message) ? message : [message]).map(textOf)
  const [reason] = Cause.prettyErrors(cause)
  return short([...said, ...(reason === undefined ? [] : [reason.message])].join(": "))
}

const annotation = ({ annotations }: Logger.Logger.Options<unknown>, key: string): string | undefined =>
  Option.match(HashMap.get(annotations, key), {
    onNone: () => undefined,
    onSome: (value) => typeof value === "string" ? value : undefined
  })
