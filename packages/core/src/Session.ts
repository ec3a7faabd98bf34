/**
 * A conversation that outlives a request: a plain value that goes in, and comes out changed.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { Question } from "./Halt.ts"
import { JsonObject } from "./internal/json.ts"
import { Thread } from "./Thread.ts"
import { ToolCall } from "./ToolCall.ts"
import { Usage } from "./Usage.ts"

/**
 * Where a session stands. `idle` and `completed` can go on; the `awaiting_…` ones wait for a person or for the caller; an
 * `error` stops the session until `recover` says otherwise.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Status = Schema.Literal(
  "idle",
  "awaiting_user",
  "awaiting_approval",
  "awaiting_tools",
  "completed",
  "error"
)

/**
 * @since 0.1.0
 * @category models
 */
export type Status = typeof Status.Type

const Text = Schema.optionalWith(Schema.String, { exact: true })

/**
 * What a person decided about a call. It counts once, when the session goes on.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Decision = Schema.Union(
  Schema.TaggedStruct("Approved", { digest: Schema.String }),
  Schema.TaggedStruct("Denied", { reason: Text })
)

/**
 * @since 0.1.0
 * @category models
 */
export type Decision = typeof Decision.Type

/**
 * A call that waits for a person's consent. Consent is bound to `digest`, which is that of the tool's name and the
 * arguments, and counts until `expiresAt`; times are milliseconds of the Clock.
 *
 * @since 0.1.0
 * @category schemas
 */
export const PendingApproval = Schema.Struct({
  toolCall: ToolCall,
  digest: Schema.String,
  requestedAt: Schema.Finite,
  expiresAt: Schema.optionalWith(Schema.Finite, { exact: true }),
  decision: Schema.optionalWith(Decision, { exact: true })
}).annotations({ identifier: "Session.PendingApproval" })

/**
 * @since 0.1.0
 * @category models
 */
export interface PendingApproval extends Schema.Schema.Type<typeof PendingApproval> {}

const listOf = <A, I>(member: Schema.Schema<A, I>) =>
  Schema.optionalWith(Schema.Array(member), { default: () => [] as ReadonlyArray<A> })

/**
 * A session: JSON through and through, in every status. `version` counts how often it was stored, 0 is never.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Session = Schema.Struct({
  id: Schema.NonEmptyString,
  thread: Thread,
  status: Status,
  /** Manual calls: the caller's to run. */
  pendingToolCalls: listOf(ToolCall),
  pendingQuestions: listOf(Question),
  /** Those that wait, and those that are decided but not yet carried out. */
  pendingApprovals: listOf(PendingApproval),
  /** Calls that may or may not have run before a crash, halted for a person to find out. */
  unknownOutcomes: listOf(ToolCall),
  /** Of the whole life of the session. */
  usage: Schema.optionalWith(Usage, { default: () => ({}) }),
  /** Handed to every handler, over the engine's. */
  context: Schema.optionalWith(JsonObject, { default: () => ({}) }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) }),
  version: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 })
}).annotations({ identifier: "Session" })

/**
 * @since 0.1.0
 * @category models
 */
export interface Session extends Schema.Schema.Type<typeof Session> {}
