/** Shows a chat in the terminal while it runs, turn after turn: live on a TTY, plain lines anywhere else. */
import { type ChatResult, Collector, type Event, Message, type StepResult, Thread, Usage } from "@allm/core"
import { Clock, Effect, Either, Stream } from "effect"
import * as Ansi from "./Ansi.ts"
import * as CallRows from "./CallRows.ts"
import * as Screen from "./Screen.ts"

/** Runs the events to their end and shows them, then what the model and what operators read, and how it ended. */
export const show = <E, R>(input: string, events: Stream.Stream<Event.Event, E, R>): Effect.Effect<void, E, R> =>
  Screen.withLogs((logged) =>
    Effect.gen(function*() {
      const screen = yield* Screen.Screen
      const begin = yield* Clock.currentTimeMillis
      const collector = Collector.make({ thread: Thread.make([Message.user(input)]) })
      const all = Stream.tap(events, (event) => Effect.sync(() => Collector.add(collector, event)))
      // Also of a chat that was cut off.
      const end = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Either.match(Collector.toChatResult(collector), {
          onLeft: () => Effect.void,
          onRight: (result) => Screen.write(summary(screen, result, logged, now - begin))
        }))

      yield* Screen.write(["", ...Screen.entry(screen, { name: " You", width: 10 }, input, "bold")])
      yield* Effect.onInterrupt(screen.live ? turns(screen, all) : lines(all), () => end)
      yield* end
    })
  )

// --- live: the turn under way is drawn again and again, the ones before it stand above --------------------------------

interface Turn {
  readonly number: number
  readonly begin: number
  readonly thoughts: string
  readonly text: string
  readonly problem: string
  readonly rows: ReadonlyArray<CallRows.Row>
  /** Whether anything has come from the model. */
  readonly hasBegun: boolean
  readonly hasAnswered: boolean
  readonly isStopped: boolean
  readonly result?: StepResult.StepResult
}

const nextTurn = (number: number, begin: number): Turn => ({
  number,
  begin,
  thoughts: "",
  text: "",
  problem: "",
  rows: [],
  hasBegun: false,
  hasAnswered: false,
  isStopped: false
})

const addToTurn = (turn: Turn, event: Event.Event, now: number): Turn => {
  switch (event._tag) {
    case "MessageStarted":
      return { ...turn, hasBegun: true }
    case "ReasoningDelta":
      return { ...turn, hasBegun: true, thoughts: turn.thoughts + event.delta }
    case "TextDelta":
      return { ...turn, hasBegun: true, text: turn.text + event.delta }
    case "ErrorOccurred":
      return { ...turn, problem: problemOf(event) }
    case "MessageCompleted":
      return { ...turn, hasAnswered: true }
    case "StepCompleted":
      return { ...turn, result: event.result }
    default:
      return { ...turn, rows: CallRows.add(turn.rows, event, now) }
  }
}

const problemOf = ({ error }: { readonly error: unknown }): string =>
  error instanceof Error ? error.message : String(error)

const turns = <E, R>(screen: Screen.Screen, events: Stream.Stream<Event.Event, E, R>): Effect.Effect<void, E, R> =>
  Effect.flatMap(Clock.currentTimeMillis, (begin) => {
    let turn: Turn | undefined = nextTurn(1, begin)
    // Columns that jump from turn to turn are hard to read.
    let widest = 14
    const stop = Effect.sync(() => {
      if (turn !== undefined) turn = { ...turn, rows: CallRows.stop(turn.rows), isStopped: true }
    })
    const picture = (now: number) => {
      if (turn === undefined) return []
      widest = Math.max(widest, ...turn.rows.map((row) => row.tool.length))
      return pictureOf(screen, turn, widest, now)
    }
    return Screen.animate(picture, (keep) => {
      const update = (event: Event.Event) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          if (turn !== undefined) turn = addToTurn(turn, event, now)
          if (event._tag === "ChatCompleted") turn = undefined
          if (event._tag !== "StepCompleted") return Effect.void
          return Effect.map(keep, () => {
            turn = nextTurn(turn!.number + 1, now)
          })
        })
      return Effect.onInterrupt(Stream.runForEach(events, update), () => stop)
    })
  })

const pictureOf = (screen: Screen.Screen, turn: Turn, widest: number, now: number): ReadonlyArray<string> => {
  const options = Screen.lineOptions(screen)
  const heading: ReadonlyArray<Ansi.Piece> = [
    { text: ` Turn ${turn.number}`.padEnd(10), style: "bold" },
    { text: `${Screen.seconds(now - turn.begin)}   ${stateOf(turn, now)}`, style: "dim" }
  ]
  const said = (label: string, text: string, style?: Ansi.Style) =>
    text === "" ? [] : Screen.entry(screen, { name: ` ${label}`, width: 10 }, text, style)
  return [
    "",
    Ansi.line(heading, options),
    ...said("thinks", turn.thoughts, "dim"),
    ...said("says", turn.text),
    ...said("error", turn.problem, "red"),
    ...CallRows.lines(turn.rows, now, { ...options, widest })
  ]
}

const stateOf = ({ hasAnswered, hasBegun, isStopped, result, rows }: Turn, now: number): string => {
  if (result !== undefined) return outcome(result).join("   ")
  if (isStopped) return "stopped"
  const over = rows.filter((row) => row.endedAt !== undefined).length
  const doing = hasAnswered && rows.length > 0
    ? `${over} of ${count(rows.length, "call")} ended`
    : hasBegun
    ? "the model answers"
    : "waits for the model"
  return `${CallRows.spinner(now)} ${doing}`
}

/** What a turn came to, and what it cost. */
const outcome = ({ response, toolResults }: StepResult.StepResult): ReadonlyArray<string> => {
  const total = Usage.totalTokens(response.usage)
  return [
    toolResults.length === 0 ? response.finishReason ?? "cut off" : count(toolResults.length, "tool call"),
    ...(total === undefined ? [] : [`${total} tokens`])
  ]
}

const count = (number: number, thing: string): string => `${number} ${thing}${number === 1 ? "" : "s"}`

// --- plain: one line per event; what comes in pieces is put together first --------------------------------------------

const lines = <E, R>(events: Stream.Stream<Event.Event, E, R>): Effect.Effect<void, E, R> =>
  Effect.suspend(() => {
    let turn = 0
    let isOpen = false
    let label = ""
    let text = ""
    const begin = (): ReadonlyArray<string> => {
      if (isOpen) return []
      isOpen = true
      return ["", `turn ${++turn}`]
    }
    const flush = (): ReadonlyArray<string> => {
      const line = text === "" ? [] : [`${label}: ${text}`]
      text = ""
      return line
    }
    const gather = (of: string, delta: string): ReadonlyArray<string> => {
      const before = of === label ? [] : flush()
      label = of
      text += delta
      return before
    }
    const line = (event: Event.Event): ReadonlyArray<string> => {
      switch (event._tag) {
        case "ChatCompleted":
          return []
        case "ReasoningDelta":
          return [...begin(), ...gather("thinks", event.delta)]
        case "TextDelta":
          return [...begin(), ...gather("says", event.delta)]
        case "ToolCallCompleted":
          return [...begin(), ...flush(), `calls ${event.toolCall.name} ${CallRows.argumentsOf(event.toolCall)}`]
        case "ErrorOccurred":
          return [...begin(), ...flush(), `error: ${problemOf(event)}`]
        case "StepCompleted":
          isOpen = false
          return [...flush(), `turn ${turn} over: ${outcome(event.result).join(", ")}`]
        default:
          return [...begin(), ...flush(), ...CallRows.plain(event)]
      }
    }
    return Stream.runForEach(events, (event) => Screen.write(line(event)))
  })

// --- the end ----------------------------------------------------------------------------------------------------------

const summary = (
  screen: Screen.Screen,
  result: ChatResult.ChatResult,
  logged: ReadonlyArray<string>,
  millis: number
): ReadonlyArray<string> => {
  const read = result.steps.flatMap(({ response, toolResults }, index) =>
    toolResults.map((message) => ({
      ...message,
      name: ` ${index + 1} ${response.toolCalls.find((call) => call.id === message.toolCallId)?.name ?? ""}`
    }))
  )
  const width = Math.max(8, ...read.map(({ name }) => name.length)) + 2
  const { inputTokens = 0, outputTokens = 0 } = result.usage
  const counts = [
    count(result.steps.length, result.haltedReason === "cancelled" ? "whole turn" : "turn"),
    count(read.length, "tool call"),
    `${inputTokens} tokens read and ${outputTokens} written`,
    ...(screen.live ? [Screen.seconds(millis)] : [])
  ]
  return [
    ...(read.length === 0 ? [] : Screen.title(screen, "What the model read of its tools")),
    ...read.flatMap(({ content, isError, name }) =>
      Screen.entry(screen, { name, width }, content, isError ? "red" : undefined)
    ),
    ...Screen.logs(screen, logged, width),
    ...Screen.title(screen, `The chat ended: ${result.haltedReason}`),
    ...(result.error === undefined ? [] : Screen.entry(screen, { name: " error", width }, result.error.message, "red")),
    ...Screen.entry(screen, { name: "", width: 1 }, counts.join(", "), "dim"),
    ...(screen.live ? [""] : [])
  ]
}
