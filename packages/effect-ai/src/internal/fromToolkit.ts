/**
 * Tools of their toolkits as tools of ours.
 */
import { type OnToolError, Tool } from "@allm/core"
import * as AiError from "@effect/ai/AiError"
import * as AiTool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { declarationOf, needsHandler } from "./tools.ts"

type AnyToolkit = Toolkit.Any | Toolkit.WithHandler<Record<string, AiTool.Any>>

/** What theirs knows of a handler, under the id of its tool. */
type Handler = Pick<AiTool.Handler<string>, "context" | "handler">

type Run = (params: unknown) => Effect.Effect<unknown, unknown>

export const fromToolkit = (
  toolkit: AnyToolkit,
  options: { readonly [name: string]: object | undefined }
): ReadonlyArray<Tool.Any> =>
  Object.values(toolkit.tools).filter(needsHandler).map((tool) => {
    const { description, name } = declarationOf(tool)
    const run = isToolkit(toolkit) ? runOf(tool) : handledBy(toolkit, tool)
    return Tool.make(name, {
      description,
      ...(tool.parametersSchema === AiTool.EmptyParams
        ? {}
        : { parameters: tool.parametersSchema as unknown as Schema.Schema<unknown, unknown> }),
      success: tool.successSchema,
      ...(AST.isNeverKeyword(tool.failureSchema.ast) ? {} : { failure: tool.failureSchema as Schema.Schema.Any }),
      replay: replayOf(tool),
      ...options[name],
      handler: run
    }) as Tool.Any
  })

const isToolkit = (toolkit: AnyToolkit): toolkit is Toolkit.Any => !Predicate.hasProperty(toolkit, "handle")

// What it was built with, under what the call brings.
const runOf = (tool: AiTool.Any): Run => {
  const Registered = Context.GenericTag<Handler>(tool.id)
  return (params) =>
    Effect.flatMap(Registered, ({ context, handler }) =>
      Effect.mapInputContext(
        handler(params),
        (current: Context.Context<never>) => Context.merge(context, current)
      )) as Effect.Effect<unknown, unknown>
}

/** Toolkits that are already provided decode arguments themselves, and hand failures over as results or fail with them. */
const handledBy = (toolkit: Toolkit.WithHandler<Record<string, AiTool.Any>>, tool: AiTool.Any): Run => {
  const encode = Schema.encodeUnknown(tool.parametersSchema as unknown as Schema.Schema<unknown, unknown>)
  const isDeclared = Schema.is(tool.failureSchema as Schema.Schema<unknown>)
  return (params) =>
    Effect.orDie(encode(params)).pipe(
      Effect.flatMap((encoded) =>
        toolkit.handle(tool.name, encoded as never) as Effect.Effect<AiTool.HandlerResult<AiTool.Any>, unknown>
      ),
      // Theirs fails with its own errors too, which no type tells of: they are crashes, unless the tool declares them.
      Effect.catchAll((failure) =>
        AiError.isAiError(failure) && !isDeclared(failure) ? Effect.die(failure) : Effect.fail(failure)
      ),
      Effect.flatMap(({ isFailure, result }): Effect.Effect<unknown, unknown> =>
        isFailure ? Effect.fail(result) : Effect.succeed(result)
      )
    )
}

const replayOf = (tool: AiTool.Any): Tool.Replay => {
  // Those that a provider defines have none.
  const annotations: Context.Context<never> | undefined = tool.annotations
  if (annotations === undefined) return "never"
  if (Context.get(annotations, AiTool.Readonly)) return "readonly"
  return Context.get(annotations, AiTool.Idempotent) ? "idempotent" : "never"
}

/** The policy that their failure modes ask for. */
export const failureModes =
  (toolkit: { readonly tools: { readonly [name: string]: AiTool.Any } }): OnToolError.OnToolError => (call, error) =>
    error._tag === "HandlerFailed" && toolkit.tools[call.name]?.failureMode === "error" ? "halt" : "continue"
