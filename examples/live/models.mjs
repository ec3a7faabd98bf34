/**
 * What `ALLM_MODEL` may name: providers, which of their models is asked unless one is named, and the variables that hold the
 * key. Of some there are servers of one's own, which need none.
 */
export const providers = {
  openai: { model: "gpt-5-mini", keys: ["OPENAI_API_KEY"], own: true },
  "openai-chat": { model: "gpt-5-mini", keys: ["OPENAI_API_KEY"], own: true },
  anthropic: { model: "claude-haiku-4-5", keys: ["ANTHROPIC_API_KEY"] },
  google: { model: "gemini-flash-latest", keys: ["GOOGLE_API_KEY", "GEMINI_API_KEY"] },
  ollama: { model: "llama3.2", keys: [], own: true }
}

const given = (variable) => (process.env[variable] ?? "").trim()

/** Whether a key of the provider is there. */
export const hasKey = ({ keys }) => keys.some((key) => given(key) !== "")

/** Takes `provider/name` apart; gives a sentence instead when no such model can be asked. */
export const read = (text) => {
  const [name, ...rest] = text.trim().split("/")
  const provider = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (provider === undefined) {
    const names = Object.keys(providers).join(", ")
    return `There is no provider ${JSON.stringify(name)}; write ALLM_MODEL=provider/name with one of ${names}.`
  }
  const needsKey = provider.keys.length > 0 && !(provider.own && given("ALLM_BASE_URL") !== "")
  if (needsKey && !hasKey(provider)) {
    return `${name} needs a key: set ${provider.keys.join(" or ")}.`
  }
  return { provider: name, model: rest.join("/") || provider.model }
}

/** The model that `ALLM_MODEL` names, a sentence that says why it cannot be asked, or nothing. */
export const chosen = () => given("ALLM_MODEL") === "" ? undefined : read(given("ALLM_MODEL"))
