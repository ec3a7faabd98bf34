/**
 * The tools of the embedded agent: real ones, and some to play with that are slow, fail, or never answer.
 */
import * as Tool from "@allm/core/Tool"
import * as ToolResult from "@allm/core/ToolResult"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { nearest } from "../nearest.ts"
import { evaluate, print } from "./calculator.ts"
import { FileRefused, make as openFiles } from "./files.ts"
import { places } from "./zones.ts"

const described = (description: string) => Schema.String.annotations({ description })

/** No such time zone; `nearest` are those that may have been meant. */
export class UnknownZone extends Schema.TaggedError<UnknownZone>("@allm/cli/demo/UnknownZone")("UnknownZone", {
  zone: Schema.String,
  detail: Schema.String,
  nearest: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return this.detail
  }
}

const unknownZone = (zone: string): UnknownZone =>
  new UnknownZone({
    zone,
    detail: `there is no time zone ${JSON.stringify(zone)}; write one such as Europe/Oslo`,
    nearest: [...new Set(nearest(zone.replaceAll("_", " "), [...places.keys()]).map((place) => places.get(place)!))]
  })

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

const clock = Tool.make("clock", {
  description: "The date and time now in a time zone",
  parameters: Schema.Struct({
    zone: Schema.optional(described("IANA name such as Europe/Oslo; without it the zone of this machine"))
  }),
  failure: UnknownZone,
  replay: "readonly",
  handler: ({ zone }) =>
    Effect.gen(function*() {
      const place = zone === undefined ? Option.some(DateTime.zoneMakeLocal()) : DateTime.zoneFromString(zone)
      if (Option.isNone(place)) return yield* unknownZone(zone ?? "")
      const now = DateTime.setZone(yield* DateTime.now, place.value)
      return {
        zone: DateTime.zoneToString(place.value),
        date: DateTime.formatIsoDate(now),
        time: DateTime.formatIsoOffset(now).slice(11, 19),
        weekday: weekdays[DateTime.getPart(now, "weekDay")]!,
        offset: DateTime.zonedOffsetIso(now)
      }
    })
})

/** An expression without a value. */
export class NoValue extends Schema.TaggedError<NoValue>("@allm/cli/demo/NoValue")("NoValue", {
  expression: Schema.String,
  position: Schema.Int,
  detail: Schema.String
}) {
  override get message(): string {
    return `${this.detail}, at position ${this.position}`
  }
}

const calculator = Tool.make("calculator", {
  description:
    "Works out an arithmetic expression: + - * / % ^, parentheses, sqrt, abs, round, floor, ceil, sin, cos, " +
    "tan, exp, ln, log, min, max, pi, e",
  parameters: { expression: described("Such as 2 * (3 + 4)^2") },
  failure: NoValue,
  replay: "readonly",
  handler: ({ expression }) =>
    Either.match(evaluate(expression), {
      onLeft: (problem) => Effect.fail(new NoValue({ expression, ...problem })),
      onRight: (value) => Effect.succeed({ expression, result: Number(print(value)) })
    })
})

const fileTools = (root: string) => {
  const files = openFiles(root)
  return [
    Tool.make("list_files", {
      description: "Lists a directory below the working directory",
      parameters: Schema.Struct({ path: Schema.optional(described("Relative path; default the working directory")) }),
      failure: FileRefused,
      replay: "readonly",
      handler: ({ path = "." }) =>
        Effect.flatMap(files, ({ list }) => Effect.map(list(path), (found) => ({ path, ...found })))
    }),
    Tool.make("read_file", {
      description: "Reads a text file below the working directory",
      parameters: { path: described("Relative path, such as README.md") },
      failure: FileRefused,
      replay: "readonly",
      handler: ({ path }) => Effect.flatMap(files, ({ read }) => Effect.map(read(path), (text) => ({ path, text })))
    }),
    Tool.make("write_note", {
      description: "Writes a new text file below the working directory, once a person has consented",
      parameters: { path: described("Relative path, such as note.txt"), text: described("What it says") },
      failure: FileRefused,
      needsApproval: true,
      handler: ({ path, text }) =>
        Effect.flatMap(files, ({ create }) => Effect.map(create(path, `${text}\n`), (bytes) => ({ path, bytes })))
    })
  ] as const
}

const slow = Tool.make("slow", {
  description: "Takes three seconds and tells how far it is",
  parameters: Schema.Struct({
    steps: Schema.optional(Schema.Int.pipe(Schema.between(1, 20)).annotations({ description: "Default 6" }))
  }),
  replay: "idempotent",
  handler: ({ steps = 6 }, { progress }) =>
    Effect.forEach(
      Array.from({ length: steps }, (_, index) => index + 1),
      (done) => Effect.delay(progress({ done, of: steps }), "500 millis"),
      { discard: true }
    ).pipe(Effect.as({ steps, seconds: steps / 2 }))
})

const stubborn = Tool.make("stubborn", {
  description: "Never answers; the limit on it is two seconds",
  timeout: "2 seconds",
  replay: "idempotent",
  handler: () => Effect.never
})

/** Fails twice for every call, and then succeeds. */
const makeFlaky = () => {
  const attempts = new Map<string, number>()
  return Tool.make("flaky", {
    description: "Fails twice and then succeeds; it is run again by itself",
    retry: Schedule.intersect(Schedule.spaced("600 millis"), Schedule.recurs(3)),
    replay: "idempotent",
    handler: (_, { idempotencyKey }) =>
      Effect.suspend(() => {
        const attempt = (attempts.get(idempotencyKey) ?? 0) + 1
        attempts.set(idempotencyKey, attempt)
        if (attempt < 3) return Effect.delay(Effect.fail(`attempt ${attempt} failed`), "200 millis")
        attempts.delete(idempotencyKey)
        return Effect.delay(Effect.succeed({ attempts: attempt }), "200 millis")
      })
  })
}

const broken = Tool.make("broken", {
  description: "Crashes, with a secret in the message",
  replay: "idempotent",
  handler: () => Effect.delay(Effect.die(new Error("no route to db.internal, password hunter2")), "700 millis")
})

const askPerson = Tool.make("ask_person", {
  description: "Asks the person a question",
  parameters: Schema.Struct({
    question: Schema.String,
    choices: Schema.optional(Schema.Array(Schema.String))
  }),
  handler: ({ choices, question }) => ToolResult.askUser(question, choices === undefined ? {} : { choices })
})

const flipCoin = Tool.make("flip_coin", {
  description: "A person flips a coin and tells how it fell",
  manual: true
})

/** All of them, with files below `root`. */
export const tools = (root: string) =>
  [clock, calculator, ...fileTools(root), slow, stubborn, makeFlaky(), broken, askPerson, flipCoin] as const
