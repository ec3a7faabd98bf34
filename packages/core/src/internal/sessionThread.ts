/**
 * The last turn of a thread: which calls it made, which have their message, and where the others' belongs.
 */
import * as Arr from "effect/Array"
import * as Option from "effect/Option"
import * as Message from "../Message.ts"
import type { Session } from "../Session.ts"
import type { Thread } from "../Thread.ts"
import type { ToolCall } from "../ToolCall.ts"

/** A call of the last turn that nothing was heard of yet: approved or refused and not carried out, or cut off by a crash. */
export const openCalls = ({ pendingToolCalls, thread }: Session): ReadonlyArray<ToolCall> => {
  const { messages } = thread
  const answered = new Set<string>()
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i]!
    if (message.role === "tool") {
      answered.add(message.toolCallId)
      continue
    }
    if (message.role !== "assistant") return []
    for (const { id } of pendingToolCalls) answered.add(id)
    return message.toolCalls.filter(({ id }) => !answered.has(id))
  }
  return []
}

/** Whether the session stopped where it should have gone on by itself. */
export const isUnfinished = (session: Session): boolean => {
  if (session.status !== "idle") return false
  const last = session.thread.messages.at(-1)
  return last?.role === "user" || last?.role === "tool" || openCalls(session).length > 0
}

/** The newest message that makes the call, as ids may come back in later turns. */
export const findCall = (thread: Thread, toolCallId: string): ToolCall | undefined => {
  const index = indexOfCall(thread, toolCallId)
  const message = thread.messages[index]
  return message?.role === "assistant" ? message.toolCalls.find(({ id }) => id === toolCallId) : undefined
}

const indexOfCall = ({ messages }: Thread, toolCallId: string): number =>
  Option.getOrElse(
    Arr.findLastIndex(messages, (message) =>
      message.role === "assistant" && message.toolCalls.some(({ id }) => id === toolCallId)),
    () =>
      -1
  )

/** The newest message that made calls. */
export const lastAsked = ({ messages }: Thread): Message.AssistantMessage | undefined =>
  Option.getOrUndefined(
    Arr.findLast(messages, (message): message is Message.AssistantMessage =>
      message.role === "assistant" && message.toolCalls.length > 0)
  )

/** The message that answers the newest call of this id. */
export const findAnswer = (thread: Thread, toolCallId: string): Message.ToolMessage | undefined => {
  const index = indexOfCall(thread, toolCallId)
  return thread.messages.slice(index + 1).find((message): message is Message.ToolMessage =>
    message.role === "tool" && message.toolCallId === toolCallId
  )
}

/** Puts tool messages in their places: behind the message that made the calls, in the order of the calls. */
export const putAnswers = (thread: Thread, answers: ReadonlyArray<Message.ToolMessage>): Thread =>
  answers.reduce(putAnswer, thread)

const putAnswer = (thread: Thread, answer: Message.ToolMessage): Thread => {
  const { messages } = thread
  const index = indexOfCall(thread, answer.toolCallId)
  const asked = messages[index]
  if (asked?.role !== "assistant") return { ...thread, messages: messages.concat(answer) }
  const start = index + 1
  let end = start
  while (messages[end]?.role === "tool") end++
  const known = new Map<string, Message.ToolMessage>()
  for (const message of messages.slice(start, end)) {
    if (message.role === "tool") known.set(message.toolCallId, message)
  }
  known.set(answer.toolCallId, answer)
  const ordered = asked.toolCalls.flatMap(({ id }) => known.get(id) ?? [])
  return { ...thread, messages: [...messages.slice(0, start), ...ordered, ...messages.slice(end)] }
}

const isQuestion = (message: Message.Message | undefined): boolean =>
  message?.role === "assistant" && message.metadata["askUser"] === true

/** Questions as the assistant's own words are for a person who replies; an answer goes to its call instead. */
export const withoutQuestion = (thread: Thread): Thread =>
  isQuestion(thread.messages.at(-1)) ? { ...thread, messages: thread.messages.slice(0, -1) } : thread

export const withQuestion = ({ pendingQuestions, thread }: Session): Thread => {
  const [first] = pendingQuestions
  if (first === undefined || isQuestion(thread.messages.at(-1))) return thread
  const message = Message.assistant(pendingQuestions.map(({ question }) => question).join("\n\n"), {
    metadata: { askUser: true, toolCallId: first.toolCallId }
  })
  return { ...thread, messages: thread.messages.concat(message) }
}
