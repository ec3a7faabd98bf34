/** Shows a batch in the terminal while it runs: a live table on a TTY, plain lines anywhere else. */
import { type Event, type ToolCall, ToolRunner } from "@allm/core"
import { Clock, Effect, Stream } from "effect"
import * as Ansi from "./Ansi.ts"
import * as CallRows from "./CallRows.ts"
import * as Screen from "./Screen.ts"

/** Runs the events to their end and shows them, then what the model and what operators read of it. */
export const show = <E, R>(
  calls: ReadonlyArray<ToolCall.ToolCall>,
  events: Stream.Stream<Event.ToolEvent, E, R>
): Effect.Effect<void, E, R> =>
  Screen.withLogs((logged) =>
    Effect.gen(function*() {
      const screen = yield* Screen.Screen
      const seen: Array<Event.ToolEvent> = []
      const all = Stream.tap(events, (event) => Effect.sync(() => void seen.push(event)))

      yield* (screen.live
        ? table(screen, calls, all)
        : Stream.runForEach(all, (event) => Screen.write(CallRows.plain(event))))
      yield* Screen.write(summary(screen, calls, ToolRunner.fold(calls, seen), logged))
    })
  )

const table = <E, R>(
  screen: Screen.Screen,
  calls: ReadonlyArray<ToolCall.ToolCall>,
  events: Stream.Stream<Event.ToolEvent, E, R>
): Effect.Effect<void, E, R> =>
  Effect.flatMap(Clock.currentTimeMillis, (begin) => {
    let rows: ReadonlyArray<CallRows.Row> = calls.map(CallRows.fromCall)
    const update = (event: Event.ToolEvent) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        rows = CallRows.add(rows, event, now)
      })
    return Screen.animate((now) => picture(screen, rows, begin, now), () =>
      Effect.onInterrupt(
        Stream.runForEach(events, update),
        () =>
          Effect.sync(() => {
            rows = CallRows.stop(rows)
          })
      ))
  })

const picture = (
  screen: Screen.Screen,
  rows: ReadonlyArray<CallRows.Row>,
  begin: number,
  now: number
): ReadonlyArray<string> => {
  const options = Screen.lineOptions(screen)
  const over = rows.filter((row) => row.endedAt !== undefined).length
  const heading: ReadonlyArray<Ansi.Piece> = [
    { text: ` ${rows.length} tool calls of one turn`, style: "bold" },
    { text: `   ${over} ended   ${Screen.seconds(now - begin)}`, style: "dim" }
  ]
  const widest = Math.max(...rows.map((row) => row.tool.length))
  return ["", Ansi.line(heading, options), "", ...CallRows.lines(rows, now, { ...options, widest })]
}

const summary = (
  screen: Screen.Screen,
  calls: ReadonlyArray<ToolCall.ToolCall>,
  { halt, messages }: ToolRunner.RunResult,
  logged: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const names = new Map(calls.map((call) => [call.id, call.name]))
  const width = Math.max(...calls.map((call) => call.name.length)) + 3
  return [
    ...Screen.title(screen, "What the model reads"),
    ...messages.flatMap(({ content, isError, toolCallId }) =>
      Screen.entry(screen, { name: ` ${names.get(toolCallId)}`, width }, content, isError ? "red" : undefined)
    ),
    ...Screen.logs(screen, logged, width),
    ...Screen.title(screen, halt === undefined ? "The loop goes on." : `The loop ends: ${halt.reason}`).slice(0, 2),
    ...(screen.live ? [""] : [])
  ]
}
