/**
 * A conversation: messages in order, only ever appended to.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Issues from "./internal/issues.ts"
import { describe, isPlainObject, JsonObject } from "./internal/json.ts"
import * as Message from "./Message.ts"
import type { Issue, ValidationError } from "./ValidationError.ts"

/**
 * A conversation as JSON: its messages, and metadata of the application's own.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Thread = Schema.Struct({
  messages: Schema.Array(Message.Message),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
}).annotations({ identifier: "Thread" })

/**
 * Messages in order, and what the application keeps with them.
 *
 * @since 0.1.0
 * @category models
 */
export interface Thread extends Schema.Schema.Type<typeof Thread> {}

/**
 * A thread without messages.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty: Thread = { messages: [], metadata: {} }

/**
 * Makes a thread of messages. Throws a `ValidationError` that names every message that is not one.
 *
 * @example
 * ```ts
 * import { Message, Thread } from "@allm/core"
 *
 * const thread = Thread.make([Message.system("Be brief."), Message.user("Hi")])
 *
 * assert.strictEqual(thread.messages.length, 2)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  messages: Iterable<Message.Message>,
  metadata: { readonly [key: string]: unknown } = {}
): Thread => {
  const thread = { messages: [...messages], metadata }
  return Either.getOrThrowWith(validate(thread), (error) => error)
}

/**
 * Adds messages at the end; the thread given stays as it is.
 *
 * @example
 * ```ts
 * import { Message, Thread } from "@allm/core"
 *
 * const greeted = Thread.append(Thread.make([Message.user("Hi")]), Message.assistant("Hello"))
 * const asked = Thread.append(greeted, [Message.user("Who are you?")])
 *
 * assert.deepStrictEqual(asked.messages.map(({ role }) => role), ["user", "assistant", "user"])
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const append: {
  (messages: Message.Message | ReadonlyArray<Message.Message>): (self: Thread) => Thread
  (self: Thread, messages: Message.Message | ReadonlyArray<Message.Message>): Thread
} = dual(2, (self: Thread, messages: Message.Message | ReadonlyArray<Message.Message>): Thread => ({
  ...self,
  messages: self.messages.concat(messages)
}))

/**
 * The newest message, if any.
 *
 * @example
 * ```ts
 * import { Message, Thread } from "@allm/core"
 * import { Option } from "effect"
 *
 * const thread = Thread.make([Message.user("Hi"), Message.assistant("Hello")])
 *
 * assert.strictEqual(Option.getOrThrow(Thread.last(thread)).role, "assistant")
 * assert.strictEqual(Option.isNone(Thread.last(Thread.empty)), true)
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const last = (self: Thread): Option.Option<Message.Message> =>
  Option.fromNullable(self.messages[self.messages.length - 1])

/**
 * Checks a value of unknown origin and reports every problem in every message. An empty thread is valid.
 *
 * @example
 * ```ts
 * import { Thread } from "@allm/core"
 * import { Either } from "effect"
 *
 * const stored: unknown = JSON.parse("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"robot\"}]}")
 * const checked = Thread.validate(stored)
 *
 * assert.match(Either.isLeft(checked) ? checked.left.message : "", /messages\[1\]/)
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const validate = (input: unknown): Either.Either<Thread, ValidationError> =>
  Issues.decode("invalid_thread", Thread, issues(input), input)

const issues = (input: unknown): ReadonlyArray<Issue> =>
  isPlainObject(input) && Array.isArray(input["messages"])
    ? Issues.each("messages", input["messages"], Message.validate)
    : [
      Issues.issue([], "invalid_type", `a thread is { messages: […] }, not ${describe(input)}; write Thread.make([…])`)
    ]
