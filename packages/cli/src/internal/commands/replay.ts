/**
 * `allm replay`: a stored session as a timeline.
 */
import { type Message, toText } from "@allm/core/Message"
import type { Session } from "@allm/core/Session"
import { SessionStore } from "@allm/core/SessionStore"
import type { StoreError } from "@allm/core/StoreError"
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Refused, wrongUse } from "../exit.ts"
import * as Home from "../home.ts"
import * as SessionIds from "../sessionIds.ts"
import { jsonLine, print, Stdio, tell } from "../stdio.ts"
import { count, line, type LineOptions, wrap } from "../terminal/style.ts"
import { fromEntries, type Timeline } from "../timeline.ts"
import { play } from "../timeline/player.ts"
import * as StoredView from "../timeline/storedView.ts"
import { view } from "../timelineView.ts"
import { type Recording, Traces } from "../trace.ts"
import { Entry } from "../trace/entry.ts"

const session = Args.text({ name: "session" }).pipe(
  Args.withDescription("The id of a session, or the beginning of one; the session that was saved last unless given"),
  Args.optional
)

const json = Options.boolean("json").pipe(
  Options.withDescription("Writes what was noted, one JSON object per line, in place of the picture")
)

const width = Options.integer("width").pipe(
  Options.withPseudoName("columns"),
  Options.withDescription("How wide the picture is; as the window, or 100, unless given"),
  Options.optional
)

const live = Options.boolean("live").pipe(
  Options.withDescription("Plays it back in a terminal, as it happened, with short pauses for long ones")
)

const speed = Options.float("speed").pipe(
  Options.withDescription("How many times as fast as it happened --live is"),
  Options.withDefault(1)
)

const leastWidth = 30
const unseenWidth = 100

export const replay = Command.make(
  "replay",
  { session, json, live, speed, width, home: Home.option },
  (given) =>
    Effect.gen(function*() {
      const { directory } = yield* Home.home(given.home)
      const columns = yield* checkedWidth(given.width)
      const pace = given.live ? yield* checkedSpeed(given.speed) : undefined
      yield* Effect.flatMap(
        chosen(given.session),
        (id) => given.json ? printEntries(id) : printPicture(id, columns, pace)
      ).pipe(
        // `| head -1` has seen enough.
        Effect.catchTag("BrokenPipe", () => Effect.void),
        Effect.provide(Home.layer(directory))
      )
    })
).pipe(
  Command.withDescription(
    "Shows a stored session as a timeline: answers and parallel calls as bars, halts, timeouts, retries, waiting"
  )
)

const checkedWidth = (asked: Option.Option<number>): Effect.Effect<number, Refused> =>
  Option.match(asked, {
    onNone: () => Effect.map(Stdio, ({ isSeen, width }) => isSeen ? Math.max(leastWidth, width - 1) : unseenWidth),
    onSome: (columns) =>
      columns >= leastWidth
        ? Effect.succeed(columns)
        : wrongUse(`A timeline needs at least ${leastWidth} columns; --width is ${columns}.`)
  })

const checkedSpeed = (asked: number): Effect.Effect<number, Refused> =>
  asked > 0 && Number.isFinite(asked)
    ? Effect.succeed(asked)
    : wrongUse(`--speed is how many times as fast it plays, such as 2 or 0.5; ${asked} is not.`)

/** The session that is meant, else the one that was saved last. */
const chosen = (asked: Option.Option<string>): Effect.Effect<string, Refused | StoreError, SessionStore | Traces> =>
  Option.match(asked, {
    onSome: (id) =>
      // Of a session that is gone there may still be a trace.
      SessionIds.find(id).pipe(
        Effect.catchTag("Refused", (refused) =>
          Effect.flatMap(recordingOf(id), ({ entries }) =>
            entries.length > 0 ? Effect.succeed(id) : Effect.fail(refused)))
      ),
    onNone: () =>
      Effect.flatMap(SessionIds.all, ({ sessions }) => {
        const [last] = [...sessions].sort((one, other) => other.updatedAt - one.updatedAt)
        return last === undefined
          ? wrongUse("There is no session to replay yet. Start one with: allm chat")
          : Effect.succeed(last.id)
      })
  })

/** What was noted; what cannot be read is as good as not there, and that is said. */
const recordingOf = (id: string): Effect.Effect<Recording, never, Traces> =>
  Effect.flatMap(
    Traces,
    (traces) =>
      Effect.catchAll(traces.read(id), (error) =>
        Effect.as(tell(`allm: ${error.message}`), { entries: [], unknown: 0, torn: 0 }))
  )

const encoded = jsonLine(Entry)

const printEntries = Effect.fnUntraced(function*(id: string) {
  const { entries } = yield* recordingOf(id)
  if (entries.length === 0) yield* tell(`allm: there is no trace of session ${id}; it was made elsewhere.`)
  for (const entry of entries) yield* print(yield* encoded(entry))
})

const printPicture = Effect.fnUntraced(function*(id: string, columns: number, speed: number | undefined) {
  const recording = yield* recordingOf(id)
  const stored = yield* storedOf(id)
  const { colour, isSeen, out, width } = yield* Stdio
  const options = { width: columns, colour, zone: DateTime.zoneMakeLocal() }
  if (speed !== undefined && isSeen) {
    const size = { columns: width, rows: process.stdout.rows || 24 }
    yield* play(fromEntries(recording.entries), { ...options, speed, size }, out)
  } else if (speed !== undefined) {
    yield* tell("allm: only a terminal can play it back; this is the whole picture.")
  }
  yield* print(...picture({ id, recording, stored: Option.getOrUndefined(stored) }, options))
})

/** The stored session, also when there is only a trace of it. */
const storedOf = (id: string): Effect.Effect<Option.Option<Session>, never, SessionStore> =>
  Effect.flatMap(SessionStore, (store) =>
    store.load(id).pipe(
      Effect.asSome,
      Effect.catchTag("NotFound", () => Effect.succeedNone),
      Effect.catchAll((error) => Effect.as(tell(`allm: ${error.message}`), Option.none()))
    ))

/** All there is to show of a session. */
export const picture = (
  { id, recording, stored }: {
    readonly id: string
    readonly recording: Recording
    readonly stored: Session | undefined
  },
  options: LineOptions & { readonly zone: DateTime.TimeZone }
): ReadonlyArray<string> => {
  const timeline = fromEntries(recording.entries)
  const messages = stored?.thread.messages ?? []
  const title = titleOf(id, stored, options)
  const rest = leftOut(recording, options)
  if (timeline.turns.length === 0) {
    return [...title, ...note(untraced, options), ...StoredView.view(messages, options), ...rest]
  }
  const before = beforeTrace(messages, timeline)
  return [
    ...title,
    ...(before.length === 0 ? [] : [...note(partlyTraced, options), ...StoredView.view(before, options)]),
    "",
    ...view(timeline, options),
    ...rest
  ]
}

const untraced =
  "There is no trace of this session, so there are no times and no bars: it was made elsewhere, or its trace is gone."

const partlyTraced = "There is no trace of the beginning, so it has no times and no bars: it was made elsewhere."

const titleOf = (id: string, stored: Session | undefined, options: LineOptions): ReadonlyArray<string> => [
  line([
    { text: `Session ${id}`, style: "bold" },
    { text: stored === undefined ? "" : ` · ${stored.status.replaceAll("_", " ")}`, style: "dim" }
  ], options)
]

/** The messages before the first one that was traced. */
const beforeTrace = (messages: ReadonlyArray<Message>, { turns }: Timeline): ReadonlyArray<Message> => {
  const first = turns.find(({ input }) => input !== undefined)?.input
  const index = messages.findIndex((message) => message.role === "user" && isBegunBy(toText(message), first))
  return messages.slice(0, Math.max(0, index)).filter(({ role }) => role !== "system")
}

const isBegunBy = (text: string, traced: string | undefined): boolean =>
  traced !== undefined && (text === traced || (traced.endsWith("…") && text.startsWith(traced.slice(0, -1))))

const leftOut = ({ torn, unknown }: Recording, options: LineOptions): ReadonlyArray<string> => [
  ...(torn === 0
    ? []
    : note(`${count(torn, "line")} of the trace ${torn === 1 ? "was" : "were"} not written to the end.`, options)),
  ...(unknown === 0
    ? []
    : note(`${count(unknown, "line")} of the trace ${unknown === 1 ? "is" : "are"} of a later version.`, options))
]

const note = (text: string, options: LineOptions): ReadonlyArray<string> =>
  wrap(text, options.width - 1).map((text) => line([{ text: ` ${text}`, style: "dim" }], options))
