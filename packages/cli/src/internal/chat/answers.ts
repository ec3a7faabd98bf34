/**
 * Asks a person what a session waits for, one thing after the other, until nothing is left.
 */
import type { PendingApproval } from "@allm/core/Session"
import * as SessionRunner from "@allm/core/SessionRunner"
import { SessionStore } from "@allm/core/SessionStore"
import type { ToolCall } from "@allm/core/ToolCall"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type Waiting, waiting } from "../conversation.ts"
import * as Style from "../terminal/style.ts"
import { dim, type Paragraph, say, Terminal } from "../terminal/terminal.ts"
import { argumentsOf, textOf } from "./callRows.ts"

/** What came of asking. */
export type Answered =
  /** There was nothing to ask. */
  | "nothing"
  | "everything"
  /** Ctrl-C: it stays pending. */
  | "left"
  /** Nothing more can be read: it stays pending. */
  | "end"

/** Asks until nothing waits any more, or the person leaves it. */
export const askAll = (sessionId: string) =>
  Effect.gen(function*() {
    const store = yield* SessionStore
    const first = waiting(yield* store.load(sessionId)).length
    let open = first
    for (let number = 1; open > 0; number++) {
      const all = waiting(yield* store.load(sessionId))
      open = all.length
      const [next] = all
      if (next === undefined) break
      const answered = yield* ask(sessionId, next, open > 1 || number > 1 ? `${number} of ${number + open - 1}  ` : "")
      if (answered !== "answered") return answered
    }
    return first === 0 ? "nothing" as const : "everything" as const
  })

type Outcome = "answered" | "left" | "end"

const ask = (sessionId: string, next: Waiting, number: string) => {
  switch (next._tag) {
    case "Question": {
      const { options, question, toolCallId, toolName } = next.question
      return askQuestion(
        `${number}${toolName} asks`,
        question,
        choicesOf(options),
        (answer) => SessionRunner.answer(sessionId, toolCallId, answer)
      )
    }
    case "Approval":
      return askApproval(sessionId, next.approval, number)
    case "ManualCall":
      return askResult(`${number}${next.toolCall.name} is yours to run`, next.toolCall, [
        dim("Write its result; begin with ! when it failed.")
      ], (result, isError) => SessionRunner.submitToolResult(sessionId, next.toolCall.id, result, { isError }))
    case "UnknownOutcome":
      return askResult(`${number}Nobody knows what became of ${next.toolCall.name}`, next.toolCall, [
        dim("The process died while it ran, so it may or may not have taken effect, and it is not run again."),
        dim("Find out, and write what became of it; begin with ! when it failed.")
      ], (result, isError) => SessionRunner.resolve(sessionId, next.toolCall.id, result, { isError }))
  }
}

const heading = (text: string): Paragraph => ({ text: `? ${text}`, style: "yellow" })

/** Reads lines until one is taken. `take` gives what is to be said when it is not. */
const reading = <E, R>(
  prompt: string,
  take: (text: string) => Effect.Effect<ReadonlyArray<Paragraph> | "taken", E, R>
): Effect.Effect<Outcome, E, R | Terminal> =>
  Effect.gen(function*() {
    const terminal = yield* Terminal
    for (;;) {
      const input = yield* terminal.readLine({
        text: Style.paint(prompt, "yellow", terminal.colour),
        kind: "answer"
      })
      if (input._tag === "Interrupt") return "left"
      if (input._tag === "End") return "end"
      if (terminal.isLive && !terminal.isInteractive) {
        yield* say({ text: input.text, lead: { text: prompt, style: "yellow" } })
      }
      const told = yield* take(input.text.trim())
      if (told === "taken") return "answered"
      yield* say(...told)
    }
  })

const taken = Effect.as("taken" as const)

// --- questions ----------------------------------------------------------------------------------------------------------

/** The first list of texts among the options of a question. */
const choicesOf = (options: { readonly [key: string]: unknown }): ReadonlyArray<string> =>
  Object.values(options).find((value): value is ReadonlyArray<string> =>
    Array.isArray(value) && value.length > 0 && value.every((member) => typeof member === "string")
  ) ?? []

const askQuestion = <E, R>(
  title: string,
  question: string,
  choices: ReadonlyArray<string>,
  answer: (text: string) => Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function*() {
    yield* say(
      "",
      heading(title),
      { text: question, indent: 2 },
      ...choices.map((choice, index) => ({ text: `${index + 1}  ${choice}`, indent: 4 })),
      ...(choices.length === 0 ? [] : [{ ...dim("Write a number, or an answer of your own."), indent: 2 }])
    )
    return yield* reading("answer › ", (text) =>
      text === ""
        ? Effect.succeed([dim("  Write an answer; Ctrl-C leaves the question open.")])
        : taken(answer(choices[Number(text) - 1] ?? text)))
  })

// --- approvals ----------------------------------------------------------------------------------------------------------

const askApproval = (sessionId: string, approval: PendingApproval, number: string) =>
  Effect.gen(function*() {
    const { digest, expiresAt, toolCall } = approval
    const isOver = expiresAt !== undefined && expiresAt <= (yield* Clock.currentTimeMillis)
    yield* say("", heading(`${number}${toolCall.name} wants to run`), ...argumentLines(toolCall))
    if (isOver) {
      yield* say({ ...dim("The time to agree to this call is over. The model is told, and may ask again."), indent: 2 })
      yield* SessionRunner.deny(sessionId, toolCall.id, { reason: "the time to agree to it was over" })
      return "answered" as const
    }
    return yield* reading("run it? y / n [why not] › ", (text) => {
      const [, word = "", reason = ""] = /^([^\s,.;:!]+)[,.;:!]*\s*([\s\S]*)$/.exec(text) ?? []
      switch (word.toLowerCase()) {
        case "y":
        case "yes":
          // Whatever else is in the line may be a condition, so it is no consent.
          if (reason !== "") break
          return Effect.catchIf(
            taken(SessionRunner.approve(sessionId, toolCall.id, { digest })),
            // The next look at the session says so.
            (error) => error._tag === "SessionError" && error.reason === "approval_expired",
            () => Effect.succeed("taken" as const)
          )
        case "n":
        case "no":
          return taken(SessionRunner.deny(sessionId, toolCall.id, reason === "" ? {} : { reason }))
      }
      return Effect.succeed([dim("  Write y to run it, n to refuse, or n and a reason; Ctrl-C leaves it open.")])
    })
  })

/** What is agreed to is shown in full. */
const argumentLines = (toolCall: ToolCall): ReadonlyArray<Paragraph> => {
  const { arguments: args, rawArguments } = toolCall
  if (typeof args !== "object" || args === null || Array.isArray(args)) {
    return [{ text: rawArguments ?? argumentsOf(toolCall), indent: 4 }]
  }
  const entries = Object.entries(args)
  return entries.length === 0
    ? [{ ...dim("without arguments"), indent: 4 }]
    : entries.map(([name, value]) => ({
      text: `${name}: ${typeof value === "string" ? JSON.stringify(value) : textOf(value)}`,
      indent: 4
    }))
}

// --- manual calls and outcomes in doubt ---------------------------------------------------------------------------------

const askResult = <E, R>(
  title: string,
  toolCall: ToolCall,
  explanation: ReadonlyArray<Paragraph>,
  submit: (result: string, isError: boolean) => Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function*() {
    yield* say(
      "",
      heading(title),
      ...argumentLines(toolCall),
      ...explanation.map((paragraph) => ({ ...paragraph, indent: 2 }))
    )
    return yield* reading("result › ", (text) => {
      const isError = text.startsWith("!")
      const result = isError ? text.slice(1).trim() : text
      return result === ""
        ? Effect.succeed([dim("  Write the result; Ctrl-C leaves the call open.")])
        : taken(submit(result, isError))
    })
  })
