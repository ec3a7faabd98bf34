/** Shows a batch in the terminal while it runs: a live table on a TTY, plain lines anywhere else. */
import { type Event, type ToolCall, ToolError, type ToolResult, ToolRunner } from "@allm/core"
import { Cause, Clock, Config, Console, Effect, Exit, Fiber, Logger, Ref, Schedule, Stream } from "effect"
import * as Ansi from "./Ansi.ts"

/** Runs the events to their end and shows them, then what the model and what operators read of it. */
export const show = <E, R>(
  calls: ReadonlyArray<ToolCall.ToolCall>,
  events: Stream.Stream<Event.ToolEvent, E, R>
): Effect.Effect<void, E, R> =>
  Effect.gen(function*() {
    const screen = yield* Screen
    const seen: Array<Event.ToolEvent> = []
    const logged: Array<string> = []
    const logger = Logger.replace(Logger.defaultLogger, Logger.make((entry) => void logged.push(logLine(entry))))
    const all = Stream.tap(events, (event) => Effect.sync(() => void seen.push(event)))

    yield* (screen.live ? table(screen, calls, all) : lines(screen, all)).pipe(Effect.provide(logger))
    yield* screen.write(summary(screen, calls, ToolRunner.fold(calls, seen), logged))
  })

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

// --- the screen -------------------------------------------------------------------------------------------------------

interface Screen {
  readonly live: boolean
  readonly colour: boolean
  readonly write: (lines: ReadonlyArray<string>) => Effect.Effect<void>
}

const Screen: Effect.Effect<Screen> = Effect.gen(function*() {
  const noColour = yield* Config.withDefault(Config.string("NO_COLOR"), "")
  const terminal = yield* Config.withDefault(Config.string("TERM"), "")
  const live = process.stdout.isTTY && terminal !== "dumb"
  return { live, colour: live && noColour === "", write: (text: ReadonlyArray<string>) => put(joined(text)) }
}).pipe(Effect.orDie)

const joined = (lines: ReadonlyArray<string>) => lines.map((text) => `${text}\n`).join("")

const put = (text: string) => Effect.sync(() => void process.stdout.write(text))

// Some terminals say 0 when they do not know.
const columns = (screen: Screen) => screen.live ? process.stdout.columns || 80 : Infinity
const rowsOfScreen = () => process.stdout.rows || 24

// --- live: one row per call, drawn again and again in place -----------------------------------------------------------

interface Row {
  readonly tool: string
  readonly state: State
  readonly startedAt?: number
  readonly endedAt?: number
  readonly detail: string
}

type State = { readonly word: string; readonly symbol: string; readonly style: Ansi.Style }

const waiting: State = { word: "waiting", symbol: "·", style: "dim" }
const running: State = { word: "running", symbol: "", style: "cyan" }
const done: State = { word: "done", symbol: "✓", style: "green" }
const paused = (word: string): State => ({ word, symbol: "■", style: "yellow" })
const stopped = paused("stopped")
const failed = (word: string): State => ({ word, symbol: "✗", style: "red" })

const stateOf = (result: ToolResult.ToolOutcome | ToolError.ToolError): State => {
  switch (result._tag) {
    case "Ok":
      return done
    case "AskUser":
      return paused("asks")
    case "Halt":
      return paused("halts")
    case "HandlerRaised":
      return failed("crashed")
    case "InvalidArguments":
      return failed("refused")
    case "Timeout":
      return failed(result.abandoned === true ? "abandoned" : "timed out")
    default:
      return failed("failed")
  }
}

/** What happened, in few words. What the model reads about it comes at the end. */
const detailOf = (result: ToolResult.ToolOutcome | ToolError.ToolError): string => {
  switch (result._tag) {
    case "Ok":
      return text(result.value)
    case "AskUser":
      return result.question
    case "Halt":
      return `${result.reason} ${text(result.result)}`
    case "HandlerFailed":
      return text(result.failure)
    case "HandlerRaised":
      return "the model is not told why"
    case "InvalidArguments":
      return result.issues.map(({ message, path }) => `${path.join(".")}: ${message}`).join("; ")
    case "Timeout":
      return `over ${seconds(result.limitMillis ?? 0)}${result.abandoned === true ? ", and did not stop" : ""}`
    default:
      return result.reason
  }
}

const text = (value: unknown): string => typeof value === "string" ? value : JSON.stringify(value)

const change = (row: Row, event: Event.ToolEvent, now: number): Row => {
  switch (event._tag) {
    case "ToolExecutionStarted":
      return { ...row, state: running, startedAt: now }
    case "ToolProgress":
      return { ...row, detail: bar(event.value) }
    case "ToolExecutionCompleted":
      return { ...row, state: stateOf(event.result), endedAt: now, detail: detailOf(event.result) }
    default:
      return row
  }
}

const table = <E, R>(
  screen: Screen,
  calls: ReadonlyArray<ToolCall.ToolCall>,
  events: Stream.Stream<Event.ToolEvent, E, R>
): Effect.Effect<void, E, R> =>
  Effect.gen(function*() {
    const begin = yield* Clock.currentTimeMillis
    const rows = yield* Ref.make<ReadonlyArray<Row>>(
      calls.map((call) => ({ tool: call.name, state: waiting, detail: "" }))
    )
    const drawn = yield* Ref.make(0)

    const draw = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const frame = picture(screen, yield* Ref.get(rows), begin, now).slice(0, Math.max(rowsOfScreen() - 1, 1))
      const above = yield* Ref.getAndSet(drawn, frame.length)
      yield* put(Ansi.rewind(above) + joined(frame))
    })

    const update = (event: Event.ToolEvent) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Ref.update(rows, (all) =>
          all.map((row, index) =>
            "toolCallId" in event && event.toolCallId === calls[index]?.id ? change(row, event, now) : row
          )))

    const ticking = yield* Effect.fork(Effect.repeat(draw, Schedule.spaced("80 millis")))
    yield* Stream.runForEach(events, update).pipe(
      Effect.onInterrupt(() =>
        Ref.update(rows, (all) =>
          all.map((row) =>
            row.state === running ? { ...row, state: stopped } : row
          ))
      ),
      Effect.ensuring(Effect.zipRight(Fiber.interrupt(ticking), draw))
    )
  }).pipe((drawing) => Effect.acquireUseRelease(put(Ansi.hideCursor), () => drawing, () => put(Ansi.showCursor)))

const picture = (screen: Screen, rows: ReadonlyArray<Row>, begin: number, now: number): ReadonlyArray<string> => {
  const options = { width: columns(screen), colour: screen.colour }
  const over = rows.filter((row) => row.endedAt !== undefined).length
  const widest = Math.max(...rows.map((row) => row.tool.length))
  const heading: ReadonlyArray<Ansi.Piece> = [
    { text: ` ${rows.length} tool calls of one turn`, style: "bold" },
    { text: `   ${over} ended   ${seconds(now - begin)}`, style: "dim" }
  ]
  return [
    "",
    Ansi.line(heading, options),
    "",
    ...rows.map(({ detail, endedAt, startedAt, state, tool }) => {
      const time = startedAt === undefined ? "" : seconds((endedAt ?? now) - startedAt)
      const symbol = state === running ? spinner[Math.floor(now / 80) % spinner.length]! : state.symbol
      return Ansi.line([
        { text: ` ${symbol} ${state.word.padEnd(9)}`, style: state.style },
        { text: `  ${tool.padEnd(widest)}` },
        { text: `  ${time.padStart(6)}  `, style: "dim" },
        { text: detail, style: state === running || state === done ? undefined : state.style }
      ], options)
    })
  ]
}

const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

const seconds = (millis: number): string => `${(millis / 1000).toFixed(1)} s`

/** `{ done, of }` as a bar, anything else as it is. */
const bar = (value: unknown): string => {
  const { done, of } = value as { readonly done: number; readonly of: number }
  return typeof done === "number" && typeof of === "number"
    ? `${"█".repeat(done)}${"░".repeat(of - done)} ${done} of ${of}`
    : text(value)
}

// --- plain: one line per event ----------------------------------------------------------------------------------------

const lines = <E, R>(screen: Screen, events: Stream.Stream<Event.ToolEvent, E, R>): Effect.Effect<void, E, R> =>
  Stream.runForEach(events, (event) => {
    switch (event._tag) {
      case "ToolExecutionStarted":
        return screen.write([`> ${event.toolName} started`])
      case "ToolProgress":
        return screen.write([`. ${event.toolName} ${JSON.stringify(event.value)}`])
      case "ToolExecutionCompleted":
        return screen.write([`${mark(event.result)} ${event.toolName} ${stateOf(event.result).word}`])
      default:
        return Effect.void
    }
  })

const mark = (result: ToolResult.ToolOutcome | ToolError.ToolError): string =>
  result._tag === "Ok" ? "+" : ToolError.isToolError(result) ? "x" : "!"

// --- the end ----------------------------------------------------------------------------------------------------------

const logLine = ({ cause, message }: Logger.Logger.Options<unknown>): string => {
  const [reason] = Cause.prettyErrors(cause)
  return [...(Array.isArray(message) ? message : [message]), ...(reason === undefined ? [] : [reason.message])].join(
    ": "
  )
}

const summary = (
  screen: Screen,
  calls: ReadonlyArray<ToolCall.ToolCall>,
  result: ToolRunner.RunResult,
  logged: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const options = { width: columns(screen), colour: screen.colour }
  const title = (text: string) => ["", Ansi.line([{ text: ` ${text}`, style: "bold" }], options), ""]
  const names = calls.map((call) => call.name)
  const indent = Math.max(...names.map((name) => name.length)) + 3
  const entry = (name: string, text: string, style?: Ansi.Style) =>
    Ansi.wrap(text, Math.max(options.width - indent, 10)).map((part, index) =>
      Ansi.line(
        [{ text: ` ${(index === 0 ? name : "").padEnd(indent - 1)}`, style: "dim" }, { text: part, style }],
        options
      )
    )
  return [
    ...title("What the model reads"),
    ...result.messages.flatMap((message) =>
      entry(
        calls.find((call) => call.id === message.toolCallId)?.name ?? "",
        message.content,
        message.isError ? "red" : undefined
      )
    ),
    ...title("What operators read in the log"),
    ...logged.flatMap((text) => entry("warning", text, "yellow")),
    ...title(result.halt === undefined ? "The loop goes on." : `The loop ends: ${result.halt.reason}`).slice(0, 2),
    ...(screen.live ? [""] : [])
  ]
}
