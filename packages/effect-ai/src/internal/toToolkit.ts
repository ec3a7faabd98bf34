/**
 * Tools of ours as a toolkit of theirs. Its calls run as they run everywhere: checked, timed, and never a crash.
 */
import { type Tool, ToolError, type ToolResult, ToolRunner, type ValidationError } from "@allm/core"
import * as AiError from "@effect/ai/AiError"
import * as AiTool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import { resultOf } from "./prompt.ts"
import { argumentsOf } from "./tools.ts"

interface Settings {
  readonly failureMode: AiTool.FailureMode
  readonly run: ToolRunner.Options
}

type AnyWithHandler = Toolkit.WithHandler<Record<string, AiTool.Any>>

export const toToolkit = (tools: ReadonlyArray<Tool.Any>, settings: Settings): AnyWithHandler => {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return {
    tools: Object.fromEntries(tools.map((tool) => [tool.name, toTool(tool, settings.failureMode)])),
    handle: ((name: string, params: unknown) => {
      const tool = byName.get(name)
      return tool === undefined ? notFound(name, byName) : handled(tool, params, settings)
    }) as unknown as AnyWithHandler["handle"]
  }
}

const toTool = (tool: Tool.Any, failureMode: AiTool.FailureMode): AiTool.Any =>
  AiTool.make(tool.name, {
    description: tool.description,
    success: Schema.Unknown,
    failure: Schema.Unknown,
    failureMode
  }).setParameters(argumentsOf(tool.inputSchema)).annotate(AiTool.Readonly, tool.replay === "readonly").annotate(
    AiTool.Idempotent,
    tool.replay !== "never"
  )

const notFound = (name: string, known: ReadonlyMap<string, Tool.Any>): Effect.Effect<never, AiError.AiError> =>
  Effect.fail(
    new AiError.MalformedOutput({
      module: "@allm/effect-ai",
      method: "toToolkit",
      description: `there is no tool ${JSON.stringify(name)}; there is ${[...known.keys()].join(", ")}`
    })
  )

type Ended = ToolResult.ToolOutcome | ToolError.ToolError

const handled = (tool: Tool.Any, params: unknown, settings: Settings): Effect.Effect<unknown, unknown> =>
  Effect.gen(function*() {
    // Theirs does not say which call it is.
    const id = `call_${(yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)}`
    const call = { id, name: tool.name, arguments: params ?? {}, metadata: {} }
    const run = yield* Effect.orDie(
      // What the tool needs stands in the type of the toolkit.
      ToolRunner.run([call], [tool], settings.run) as Effect.Effect<
        ToolRunner.RunResult,
        ValidationError.ValidationError
      >
    )
    const ended: Ended = run.outcomes[0]?.result ?? left(tool, id, run)
    const content = run.messages[0]?.content ?? wordsOf(ended)
    if (ended._tag === "Ok") return { isFailure: false, result: ended.value, encodedResult: resultOf(content) }
    const result: unknown = ended._tag === "HandlerFailed" ? ended.failure : ended
    return settings.failureMode === "error"
      ? yield* Effect.fail(result)
      : { isFailure: true, result, encodedResult: resultOf(content) }
  })

// Theirs has nobody who waits.
const left = (tool: Tool.Any, toolCallId: string, run: ToolRunner.RunResult): ToolError.ToolError =>
  run.approvals.length > 0
    ? new ToolError.Denied({
      toolName: tool.name,
      toolCallId,
      detail: "it needs a person's consent, and nobody is asked"
    })
    : new ToolError.NotFound({
      toolName: tool.name,
      toolCallId,
      detail: "the tool is manual",
      remedy: "write disableToolCallResolution: true and run its calls yourself"
    })

const wordsOf = (ended: Ended): string => ended._tag === "Denied" || ended._tag === "NotFound" ? ended.message : "null"
