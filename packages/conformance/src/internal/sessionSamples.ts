/**
 * Sessions to keep: of every status, and with every text that a careless store changes.
 */
import { Message, type Session, ToolCall } from "@allm/core"

export const session = (id: string, fields: Partial<Session.Session> = {}): Session.Session => ({
  id,
  thread: { messages: [Message.user("Hi")], metadata: {} },
  status: "idle",
  pendingToolCalls: [],
  pendingQuestions: [],
  pendingApprovals: [],
  unknownOutcomes: [],
  usage: {},
  context: {},
  metadata: {},
  version: 0,
  ...fields
})

export const saying = (self: Session.Session, texts: ReadonlyArray<string>): Session.Session => ({
  ...self,
  thread: { ...self.thread, messages: texts.map((text) => Message.user(text)) }
})

/** The texts of the messages, which tell a thread from another. */
export const said = (self: Session.Session): ReadonlyArray<string> => self.thread.messages.map(Message.toText)

const call = (id: string): ToolCall.ToolCall =>
  ToolCall.make({ id, name: "pay", arguments: { amount: 12.5, to: ["Zoë"] }, metadata: { index: 0 } })

export const texts: ReadonlyArray<string> = [
  "",
  " ",
  "null",
  "Grüße 👋",
  "a\u0308",
  "\ud800 alone",
  "\u0000",
  "a\nb\r\n\tc",
  "'; DROP TABLE allm_sessions; --",
  "\\\"",
  "\\u0000",
  "\u2028",
  "${a} {{b}} ? $1 :c",
  "long ".repeat(20_000)
]

// As parsed, because the literal would set the prototype.
const odd = JSON.parse("{\"__proto__\":{\"a\":1},\"constructor\":\"c\",\"toString\":null,\"0\":[],\"\":{}}") as object

/** Every field, in every status; made anew for every check. */
export const samples = (prefix: string): ReadonlyArray<Session.Session> => [
  session(`${prefix}empty`, { thread: { messages: [], metadata: {} } }),
  session(`${prefix}completed`, {
    status: "completed",
    thread: {
      messages: [
        Message.system("Be brief.", { name: "boss" }),
        Message.user([
          { type: "text", text: "What is this?" },
          { type: "image", source: { type: "url", url: "https://allm.example/a.png" }, detail: "low" },
          { type: "image", source: { type: "base64", mediaType: "image/png", data: "iVBO" } }
        ]),
        Message.assistant("", {
          toolCalls: [call("c1"), ToolCall.fromRaw({ id: "c2", name: "pay", rawArguments: "{\"amount\":" })]
        }),
        Message.tool("c1", "{\"ok\":true}", { metadata: { took: 3 } }),
        Message.tool("c2", "no JSON", { isError: true }),
        Message.assistant("Done.", { metadata: { askUser: true } })
      ],
      metadata: { title: "An image" }
    },
    usage: { inputTokens: 10, outputTokens: 2, totalCost: 0.0125, extra: { audio: 1 } }
  }),
  session(`${prefix}awaiting_tools`, { status: "awaiting_tools", pendingToolCalls: [call("c1"), call("c2")] }),
  session(`${prefix}awaiting_user`, {
    status: "awaiting_user",
    pendingQuestions: [{ toolCallId: "c1", toolName: "ask", question: "Which city?", options: { choices: ["Oslo"] } }]
  }),
  session(`${prefix}awaiting_approval`, {
    status: "awaiting_approval",
    pendingApprovals: [
      { toolCall: call("c1"), digest: "d1", requestedAt: 1, expiresAt: 1_900_000_000_000 },
      { toolCall: call("c2"), digest: "d2", requestedAt: 1, decision: { _tag: "Denied", reason: "too much" } },
      { toolCall: call("c3"), digest: "d3", requestedAt: 1, decision: { _tag: "Approved", digest: "d3" } }
    ]
  }),
  session(`${prefix}error`, {
    status: "error",
    metadata: { error: { _tag: "AdapterError", reason: "unknown" } },
    unknownOutcomes: [call("c1")]
  }),
  session(`${prefix}texts`, {
    thread: { messages: texts.map((text) => Message.user(text, { metadata: { text } })), metadata: { ...odd } },
    context: { texts, odd, numbers: [0, 1, -2.5, 1e300, 5e-324, 2 ** 53, true, null] },
    metadata: Object.fromEntries(texts.map((text, index) => [text, index]))
  })
]

/** Ids that a careless store mixes up, loses, or takes for something else. */
export const ids = (prefix: string): ReadonlyArray<string> =>
  [
    "a",
    "A",
    "a/b",
    "a%2fb",
    "a%2Fb",
    "a%",
    "a_",
    "a b",
    "a ",
    "../a",
    ".",
    "..",
    "con",
    "a'b\"c`d",
    "a\\b",
    "a:b*c?",
    "__proto__",
    "sessions",
    "index.json",
    "ä",
    "a\u0308",
    "\n",
    "\u007f",
    "\uffff",
    "👋",
    `${"long ".repeat(90)}1`,
    `${"long ".repeat(90)}2`,
    `${"長".repeat(450)}1`,
    `${"長".repeat(450)}2`
  ].map((id) => `${prefix}${id}`)

/** Ids that not every store could keep, so none does. */
export const badIds: ReadonlyArray<string> = ["", "a\u0000b", "\ud800", "a\udc00b", "x".repeat(513)]

/** In the order of their code points. */
export const sorted = (values: ReadonlyArray<string>): ReadonlyArray<string> =>
  values
    .map((value) => [value, Array.from(value, (character) => character.codePointAt(0)!)] as const)
    .sort(([, left], [, right]) => {
      const at = left.findIndex((point, index) => point !== right[index])
      return at === -1 ? left.length - right.length : left[at]! - (right[at] ?? -1)
    })
    .map(([value]) => value)
