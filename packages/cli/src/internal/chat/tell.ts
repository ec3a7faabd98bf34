/**
 * The standing texts of a chat: how it begins, what its commands show, how a turn ended.
 */
import type { Service as Engine } from "@allm/core/Engine"
import type { Session } from "@allm/core/Session"
import type { Any as AnyTool, Replay } from "@allm/core/Tool"
import * as Usage from "@allm/core/Usage"
import * as Duration from "effect/Duration"
import type { Agent } from "../agent.ts"
import { isUnfinished, lastWords, titleOf, type TurnError, waiting } from "../conversation.ts"
import { keyVariables, type Model } from "../models.ts"
import * as Style from "../terminal/style.ts"
import { dim, type Paragraph } from "../terminal/terminal.ts"
import { explain } from "./errors.ts"
import { commands } from "./line.ts"
import type { Ended } from "./turn.ts"

/** What a chat is begun with. */
export interface Setting {
  readonly agent: Pick<Agent, "name" | "file" | "instructions" | "prompt" | "suggestions">
  readonly model: Pick<Model, "label" | "isDemo" | "origin">
  /** What the engine says its model is. */
  readonly label: string
  /** How a session is gone on with, on the command line. */
  readonly comeBack: (sessionId: string) => string
}

export const header = (setting: Setting, sessionId: string): ReadonlyArray<Paragraph> => {
  const { agent, label, model } = setting
  const parts = [
    `allm  ${label}`,
    `session ${sessionId}`,
    ...(agent.name === label ? [] : [`agent ${agent.name}`]),
    "/help"
  ]
  return [
    { text: parts.join("  ·  "), style: "bold" },
    ...(model.isDemo && label === model.label ? embedded(model) : [])
  ]
}

const embedded = ({ origin }: Setting["model"]): ReadonlyArray<Paragraph> => {
  const keys = `${keyVariables.slice(0, -1).join(", ")} or ${keyVariables.at(-1)}`
  const found = origin === "none" ? "No key was found in the environment, so the" : "The"
  return [
    dim(`${found} embedded model answers: it is scripted, its tools are real. Set ${keys} to talk to a real one.`)
  ]
}

export const suggestions = ({ suggestions }: Setting["agent"]): ReadonlyArray<Paragraph> =>
  suggestions.length === 0 ? [] : [
    dim(""),
    dim("Things to say:"),
    ...suggestions.map((text) => ({ ...dim(text), indent: 2 }))
  ]

/** How the last command of a shell would be written: with quotes where they are needed. */
export const quoted = (word: string): string =>
  /^[\w./:@=+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

/** A command line has a line of its own, to be copied. */
export const command = (text: string): ReadonlyArray<Paragraph> => [{ ...dim(text), indent: 2 }]

export const help: ReadonlyArray<Paragraph> = [
  ...Object.entries(commands).map(([name, text]) => ({ text, label: `/${name}`.padEnd(7), indent: 2 })),
  { text: "" },
  dim(
    "Anything else is said to the model, also a path such as /etc/hosts. Begin with // to say something that looks like a command."
  ),
  dim(
    "Ctrl-C stops the turn that runs; again, or at an empty line, it leaves. What is typed meanwhile waits at the prompt."
  ),
  dim("An empty line goes on where a turn was cut off.")
]

// --- tools --------------------------------------------------------------------------------------------------------------

export const tools = ({ tools }: Engine): ReadonlyArray<Paragraph> => {
  const widest = Math.max(0, ...tools.map(({ name }) => Style.widthOf(name)))
  return tools.length === 0
    ? [dim("This agent has no tools.")]
    : tools.flatMap((tool) => [
      { text: tool.description, label: Style.pad(tool.name, widest), indent: 2 },
      ...flagsOf(tool).map((text) => ({ ...dim(text), label: " ".repeat(widest), indent: 2 }))
    ])
}

const replays: { readonly [R in Replay]: ReadonlyArray<string> } = {
  never: [],
  idempotent: ["safe to repeat"],
  readonly: ["only reads"]
}

const flagsOf = (tool: AnyTool): ReadonlyArray<string> => {
  const flags = [
    ...(tool.needsApproval === false
      ? []
      : [tool.needsApproval === true ? "needs your approval" : "may need your approval"]),
    ...(tool.manual ? ["yours to run"] : []),
    ...(tool.timeout === undefined ? [] : [`times out after ${Duration.format(tool.timeout)}`]),
    ...(tool.retry === undefined ? [] : ["run again when it fails"]),
    ...(tool.exclusive === false ? [] : [tool.exclusive === true ? "runs alone" : "one call per key at a time"]),
    ...replays[tool.replay]
  ]
  return flags.length === 0 ? [] : [flags.join(", ")]
}

// --- the end of a turn --------------------------------------------------------------------------------------------------

const reasons: { readonly [reason: string]: string } = {
  max_turns: "ended: the limit of model calls was reached, an empty line goes on",
  tool_error: "ended: a tool failed, and this agent stops at that",
  halt_when: "ended: the agent's condition was met",
  max_tool_calls: "ended: the budget of tool calls is used up",
  max_tokens: "ended: the budget of tokens is used up",
  max_duration: "ended: the budget of time is used up",
  repeated_call: "ended: the model repeated the same call"
}

/** Reasons that need no word: it is done, or it is asked right away. */
const plainReasons: ReadonlySet<string> = new Set(["completed", "ask_user", "approval", "manual_tool_calls", "error"])

export const endOf = (ended: Exclude<Ended<TurnError>, { readonly _tag: "Abandoned" }>): ReadonlyArray<Paragraph> => {
  const time = Style.duration(ended.millis)
  switch (ended._tag) {
    case "Interrupted":
      return [{
        text: `Stopped after ${time}. What happened until then is saved; an empty line goes on.`,
        style: "yellow"
      }]
    case "Failed":
      return [
        { text: explain(ended.error), style: "red" },
        dim(`${time} · what was said is kept, an empty line tries again`)
      ]
    case "Completed": {
      const { result } = ended
      if (result === undefined) return [dim(time)]
      const { error, finalResponse, haltedReason } = result
      const failed = haltedReason === "error"
        ? [{
          text: error === undefined ? "The model ended its answer with an error." : explain(error),
          style: "red" as const
        }]
        : []
      const reason = plainReasons.has(haltedReason)
        ? cutOff(finalResponse.finishReason)
        : [reasons[haltedReason] ?? `ended: ${haltedReason}`]
      const again = haltedReason === "error" ? ["an empty line tries again"] : []
      return [...failed, dim([time, ...tokensOf(result.usage), ...reason, ...again].join(" · "))]
    }
  }
}

const cutOff = (finishReason: string | undefined): ReadonlyArray<string> =>
  finishReason === "length"
    ? ["cut off: the answer was too long"]
    : finishReason === "content_filter"
    ? ["cut off by the provider's filter"]
    : []

const tokensOf = (usage: Usage.Usage): ReadonlyArray<string> => {
  const { inputTokens, outputTokens } = usage
  if (inputTokens !== undefined && outputTokens !== undefined) {
    return [`${inputTokens} tokens read, ${outputTokens} written`]
  }
  const total = Usage.totalTokens(usage)
  return total === undefined ? [] : [Style.count(total, "token")]
}

// --- a session that is gone on with -------------------------------------------------------------------------------------

export const resumed = (session: Session): ReadonlyArray<Paragraph> => {
  const messages = session.thread.messages.filter(({ role }) => role !== "system").length
  const title = titleOf(session)
  return [
    { text: "" },
    dim(`${session.id}${title === "" ? "" : `  ${Style.cut(title, 60)}`}  ${Style.count(messages, "message")}`),
    ...lastWords(session).map(({ role, text }) => ({
      ...dim(`${role === "user" ? "› " : ""}${Style.cut(text, 300)}`),
      indent: 2
    })),
    ...stateOf(session)
  ]
}

/** Why a session is not simply at rest. */
const stateOf = (session: Session): ReadonlyArray<Paragraph> => {
  const open = waiting(session).length
  if (open > 0) {
    return [{ text: `It was left waiting for you: ${Style.count(open, "thing")} to answer.`, style: "yellow" }]
  }
  if (!isUnfinished(session)) return []
  return [{
    text: session.status === "error"
      ? "Its last turn ended with an error; an empty line tries again, or say something."
      : "Its last turn was cut off; an empty line goes on with it, or say something.",
    style: "yellow"
  }]
}
