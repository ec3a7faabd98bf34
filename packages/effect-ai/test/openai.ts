/** Wire samples of the Responses API, written by hand after its documentation. */

const response = {
  id: "resp_1",
  object: "response",
  created_at: 1_760_000_000,
  status: "in_progress",
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  model: "gpt-test",
  output: [] as ReadonlyArray<unknown>,
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  service_tier: "default",
  store: false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  truncation: "disabled",
  usage: null,
  metadata: {}
}

const usage = {
  input_tokens: 50,
  input_tokens_details: { cached_tokens: 40 },
  output_tokens: 12,
  output_tokens_details: { reasoning_tokens: 4 },
  total_tokens: 62
}

type Item = { readonly id: string; readonly type: string; readonly [key: string]: unknown }

interface Said {
  readonly item: Item
  readonly start: Item
  readonly between: (index: number) => ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }>
}

export const message = (id: string, pieces: ReadonlyArray<string>): Said => {
  const item = (status: string, text: string): Item => ({
    id,
    type: "message",
    role: "assistant",
    status,
    content: text === "" ? [] : [{ type: "output_text", text, annotations: [], logprobs: [] }]
  })
  return {
    start: item("in_progress", ""),
    item: item("completed", pieces.join("")),
    between: (index) =>
      pieces.map((delta) => ({
        type: "response.output_text.delta",
        item_id: id,
        output_index: index,
        content_index: 0,
        delta,
        logprobs: []
      }))
  }
}

export const call = (id: string, name: string, pieces: ReadonlyArray<string>): Said => {
  const item = (status: string, text: string): Item => ({
    id: `fc_${id}`,
    type: "function_call",
    call_id: id,
    name,
    arguments: text,
    status
  })
  return {
    start: item("in_progress", ""),
    item: item("completed", pieces.join("")),
    between: (index) =>
      pieces.map((delta) => ({
        type: "response.function_call_arguments.delta",
        item_id: `fc_${id}`,
        output_index: index,
        delta
      }))
  }
}

export const reasoning = (id: string, text: string, encrypted: string): Said => ({
  start: { id, type: "reasoning", summary: [], encrypted_content: "" },
  item: { id, type: "reasoning", summary: [{ type: "summary_text", text }], encrypted_content: encrypted },
  between: (index) => [{
    type: "response.reasoning_summary_text.delta",
    item_id: id,
    output_index: index,
    summary_index: 0,
    delta: text
  }]
})

const numbered = (frames: ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }>) =>
  frames.map((frame, index) => ({ ...frame, sequence_number: index }))

export const created = { type: "response.created", response }

/** The frames of a streamed answer. */
export const frames = (said: ReadonlyArray<Said>) =>
  numbered([
    created,
    ...said.flatMap(({ between, item, start }, index) => [
      { type: "response.output_item.added", output_index: index, item: start },
      ...between(index),
      { type: "response.output_item.done", output_index: index, item }
    ]),
    { type: "response.completed", response: whole(said) }
  ])

/** The same answer in one piece. */
export const whole = (said: ReadonlyArray<Said>) => ({
  ...response,
  status: "completed",
  output: said.map(({ item }) => item),
  usage
})

export const error = numbered([
  created,
  { type: "error", code: "server_error", message: "The server had an error", param: null }
])

export const failed = numbered([
  created,
  {
    type: "response.failed",
    response: { ...response, status: "failed", error: { code: "server_error", message: "The server had an error" } }
  }
])
