const fromSource = ["--import=./lib/typescript.mjs"]

/** In the order of the tables. `ours` are held to the gates and must leave no timer and no fiber behind. */
export const subjects = [
  { name: "floor", what: "a loop written by hand: `JSON.parse`, `Promise.all`, `JSON.stringify`, and no care at all" },
  { name: "guarded", what: "the same with 64 workers, and a timer, an abort signal and a kept failure for each call" },
  { name: "wire", what: "the floor, printing its history for each request and parsing each answer, as HTTP demands" },
  { name: "effect", what: "a loop by hand on `Effect.forEach`, `Effect.timeout`, `Effect.exit` and `Stream`" },
  { name: "ai-sdk", what: "`generateText` and `streamText` of the AI SDK", peer: true },
  { name: "effect-ai", what: "`Chat` of @effect/ai in the loop of its documentation", peer: true },
  { name: "openai-agents", what: "the OpenAI Agents SDK, only its streams", peer: true },
  { name: "openai", what: "OpenAI's own client, which reads the stream and does nothing else" },
  {
    name: "allm",
    what: "`ToolRunner.run`, `Allm.chat` and `Allm.stream`, read by chunks; over HTTP with @allm/openai",
    ours: true,
    nodeOptions: fromSource
  },
  {
    name: "allm-effect",
    what: "`ToolRunner.run` with a handler that returns an Effect",
    ours: true,
    nodeOptions: fromSource
  },
  {
    name: "allm-stream",
    what: "`ToolRunner.stream` by chunks, `Allm.stream` event by event",
    ours: true,
    nodeOptions: fromSource
  }
]

export const names = subjects.map(({ name }) => name)
export const peers = subjects.filter(({ peer }) => peer).map(({ name }) => name)
