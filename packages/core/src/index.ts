/**
 * Tool calls and agent loops as Effect values.
 *
 * @since 0.1.0
 */

/**
 * The model side: what turns a request into events.
 *
 * @since 0.1.0
 */
export * as Adapter from "./Adapter.ts"

/**
 * What can go wrong between the library and a model.
 *
 * @since 0.1.0
 */
export * as AdapterError from "./AdapterError.ts"

/**
 * Asking a model: once, for one turn with its tools, or in a loop until it is done.
 *
 * @since 0.1.0
 */
export * as Allm from "./Allm.ts"

/**
 * The failure of a chat whose caller's own function threw.
 *
 * @since 0.1.0
 */
export * as CallbackFailed from "./CallbackFailed.ts"

/**
 * What a whole chat came to.
 *
 * @since 0.1.0
 */
export * as ChatResult from "./ChatResult.ts"

/**
 * Folding events back into results: a stream to its end, or as far as it came.
 *
 * @since 0.1.0
 */
export * as Collector from "./Collector.ts"

/**
 * What drives a loop: an adapter, the tools, and the settings every call starts from.
 *
 * @since 0.1.0
 */
export * as Engine from "./Engine.ts"

/**
 * Everything that happens, as it happens: one closed union, told apart by `_tag`.
 *
 * @since 0.1.0
 */
export * as Event from "./Event.ts"

/**
 * A scripted model for tests and examples: no network, no keys, time only through the Clock.
 *
 * @since 0.1.0
 */
export * as Fake from "./Fake.ts"

/**
 * What stopped a batch, and what waits for a person because of it.
 *
 * @since 0.1.0
 */
export * as Halt from "./Halt.ts"

/**
 * Why a run or a chat ended.
 *
 * @since 0.1.0
 */
export * as HaltReason from "./HaltReason.ts"

/**
 * Adapters that speak HTTP: a request is written, and the answer read as server-sent events or as one body of JSON.
 *
 * A provider is a `Protocol`: how to write a request, and what its frames mean. The rest is here: reading any cut of bytes,
 * keys that never show, refusals as typed errors, connections that close when nobody listens any more.
 *
 * @since 0.1.0
 */
export * as HttpAdapter from "./HttpAdapter.ts"

/**
 * What is said in a conversation, and by whom.
 *
 * @since 0.1.0
 */
export * as Message from "./Message.ts"

/**
 * What happens to the batch when a call fails.
 *
 * @since 0.1.0
 */
export * as OnToolError from "./OnToolError.ts"

/**
 * The settings of a provider: plain values, or read from the environment by `Config`. For whoever writes a provider.
 *
 * @since 0.1.0
 */
export * as ProviderSettings from "./ProviderSettings.ts"

/**
 * What a model is asked.
 *
 * @since 0.1.0
 */
export * as Request from "./Request.ts"

/**
 * What a model answered.
 *
 * @since 0.1.0
 */
export * as Response from "./Response.ts"

/**
 * A conversation that outlives a request: a plain value that goes in, and comes out changed.
 *
 * @since 0.1.0
 */
export * as Session from "./Session.ts"

/**
 * The failure of an operation that does not fit where a session stands.
 *
 * @since 0.1.0
 */
export * as SessionError from "./SessionError.ts"

/**
 * Who may work on a session: one at a time, across fibers and processes, and for a limited time.
 *
 * @since 0.1.0
 */
export * as SessionLease from "./SessionLease.ts"

/**
 * Folding the events of a turn into the session it leaves, where only the events are at hand: at the other end of a wire.
 *
 * @since 0.1.0
 */
export * as SessionReducer from "./SessionReducer.ts"

/**
 * The everyday loop of a server: load a session, be the only one who works on it, run or resume it, save it, let go of it.
 *
 * @since 0.1.0
 */
export * as SessionRunner from "./SessionRunner.ts"

/**
 * Where sessions are kept between requests, processes and crashes.
 *
 * @since 0.1.0
 */
export * as SessionStore from "./SessionStore.ts"

/**
 * What one turn of the loop came to.
 *
 * @since 0.1.0
 */
export * as StepResult from "./StepResult.ts"

/**
 * What can go wrong between the library and a place where it keeps things.
 *
 * @since 0.1.0
 */
export * as StoreError from "./StoreError.ts"

/**
 * What operators can measure.
 *
 * @since 0.1.0
 */
export * as Telemetry from "./Telemetry.ts"

/**
 * A conversation: messages in order, only ever appended to.
 *
 * @since 0.1.0
 */
export * as Thread from "./Thread.ts"

/**
 * Tools a model may call: a name, a description, a schema for the arguments, and a handler.
 *
 * @since 0.1.0
 */
export * as Tool from "./Tool.ts"

/**
 * A call a model made: which tool, with which arguments.
 *
 * @since 0.1.0
 */
export * as ToolCall from "./ToolCall.ts"

/**
 * What a handler knows about the call it serves: as its second argument, and as a service.
 *
 * @since 0.1.0
 */
export * as ToolContext from "./ToolContext.ts"

/**
 * Every way a tool call can go wrong, as a closed union of tagged errors.
 *
 * `HandlerFailed` is what a handler reported; every other tag is what happened to it.
 *
 * @since 0.1.0
 */
export * as ToolError from "./ToolError.ts"

/**
 * What runs one call of one tool, and turns every way it can end into exactly one outcome or `ToolError`.
 *
 * An executor never retries, never times out, looks nothing up and invents no ids: the runner does.
 *
 * @since 0.1.0
 */
export * as ToolExecutor from "./ToolExecutor.ts"

/**
 * What survives the death of a process in the middle of a batch.
 *
 * @since 0.1.0
 */
export * as ToolJournal from "./ToolJournal.ts"

/**
 * The four explicit results of a tool handler.
 *
 * A handler may return a bare value: that is `ok(value)`. The other three say something a value cannot.
 *
 * @since 0.1.0
 */
export * as ToolResult from "./ToolResult.ts"

/**
 * How a result becomes the text of a tool message.
 *
 * @since 0.1.0
 */
export * as ToolResultEncoder from "./ToolResultEncoder.ts"

/**
 * Runs a batch of tool calls: bounded, timed, and with exactly one message per call, whatever the tools do.
 *
 * @since 0.1.0
 */
export * as ToolRunner from "./ToolRunner.ts"

/**
 * The failure of a run whose model asked for a tool that is not there.
 *
 * @since 0.1.0
 */
export * as UnknownTool from "./UnknownTool.ts"

/**
 * What a model call used up.
 *
 * @since 0.1.0
 */
export * as Usage from "./Usage.ts"

/**
 * Bad input, with every problem found and what to write instead.
 *
 * @since 0.1.0
 */
export * as ValidationError from "./ValidationError.ts"
