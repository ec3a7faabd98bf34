/** The terminal: what it can show, and a picture on it that is drawn again and again in place. */
import { Cause, Clock, Config, Console, Effect, Exit, Fiber, Logger, Schedule } from "effect"
import * as Ansi from "./Ansi.ts"

export interface Screen {
  /** Whether a picture can be drawn again in place: not when the output goes to a file. */
  readonly live: boolean
  readonly colour: boolean
}

export const Screen: Effect.Effect<Screen> = Effect.gen(function*() {
  const noColour = yield* Config.withDefault(Config.string("NO_COLOR"), "")
  const terminal = yield* Config.withDefault(Config.string("TERM"), "")
  const live = process.stdout.isTTY && terminal !== "dumb"
  return { live, colour: live && noColour === "" }
}).pipe(Effect.orDie)

/** How lines are cut and coloured. It changes with the size of the window. */
export const lineOptions = (screen: Screen) => ({
  // Some terminals say 0 when they do not know.
  width: screen.live ? process.stdout.columns || 80 : Infinity,
  colour: screen.colour
})

const put = (text: string): void => void process.stdout.write(text)

const joined = (lines: ReadonlyArray<string>) => lines.map((text) => `${text}\n`).join("")

export const write = (lines: ReadonlyArray<string>): Effect.Effect<void> => Effect.sync(() => put(joined(lines)))

/**
 * Draws `picture` many times a second while something runs. `keep` draws it a last time, whole, and leaves it there; what
 * is drawn next comes below.
 */
export const animate = <A, E, R>(
  picture: (now: number) => ReadonlyArray<string>,
  run: (keep: Effect.Effect<void>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  let above = 0
  const draw = Effect.map(Clock.currentTimeMillis, (now) => {
    // What does not fit would be drawn twice. The end is where things happen.
    const frame = picture(now).slice(-Math.max((process.stdout.rows || 24) - 1, 1))
    put(Ansi.rewind(above) + joined(frame))
    above = frame.length
  })
  const keep = Effect.map(Clock.currentTimeMillis, (now) => {
    put(Ansi.rewind(above) + joined(picture(now)))
    above = 0
  })
  return Effect.acquireUseRelease(
    Effect.sync(() => put(Ansi.hideCursor)),
    () =>
      Effect.flatMap(
        Effect.fork(Effect.repeat(draw, Schedule.spaced("80 millis"))),
        (ticking) => Effect.ensuring(run(keep), Effect.zipRight(Fiber.interrupt(ticking), keep))
      ),
    () => Effect.sync(() => put(Ansi.showCursor))
  )
}

/** A heading with space around it. */
export const title = (screen: Screen, text: string): ReadonlyArray<string> => [
  "",
  Ansi.line([{ text: ` ${text}`, style: "bold" }], lineOptions(screen)),
  ""
]

/** A name in a column of its own, and a text beside it, in as many lines as it needs. */
export const entry = (
  screen: Screen,
  column: { readonly name: string; readonly width: number },
  text: string,
  style?: Ansi.Style
): ReadonlyArray<string> => {
  const options = lineOptions(screen)
  return Ansi.wrap(text, Math.max(options.width - column.width, 10)).map((part, index) =>
    Ansi.line(
      [{ text: (index === 0 ? column.name : "").padEnd(column.width), style: "dim" }, { text: part, style }],
      options
    )
  )
}

export const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

/** Puts log lines aside while something runs; they would tear the picture apart. */
export const withLogs = <A, E, R>(
  use: (logged: ReadonlyArray<string>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const logged: Array<string> = []
    const logger = Logger.make((options) => void logged.push(logLine(options)))
    return Effect.provide(use(logged), Logger.replace(Logger.defaultLogger, logger))
  })

const logLine = ({ cause, message }: Logger.Logger.Options<unknown>): string => {
  const [reason] = Cause.prettyErrors(cause)
  const said = Array.isArray(message) ? message : [message]
  return [...said, ...(reason === undefined ? [] : [reason.message])].join(": ")
}

/** What operators read. */
export const logs = (screen: Screen, logged: ReadonlyArray<string>, width: number): ReadonlyArray<string> =>
  logged.length === 0
    ? []
    : [
      ...title(screen, "What operators read in the log"),
      ...logged.flatMap((text) => entry(screen, { name: " warning", width }, text, "yellow"))
    ]

/** Runs a program until it ends or Ctrl-C interrupts it; then every tool is interrupted too, and the cursor is back. */
export const main = <A, E>(program: Effect.Effect<A, E>): void => {
  const fiber = Effect.runFork(Effect.tapErrorCause(program, (cause) => Console.error(Cause.pretty(cause))))
  const interrupt = () => fiber.unsafeInterruptAsFork(fiber.id())
  process.once("SIGINT", interrupt)
  fiber.addObserver((exit) => {
    process.off("SIGINT", interrupt)
    process.exitCode = Exit.isSuccess(exit) ? 0 : Exit.isInterrupted(exit) ? 130 : 1
  })
}
