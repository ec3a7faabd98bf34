/**
 * Files: bytes or an address, as theirs holds them and as ours does.
 */
import { Message } from "@allm/core"
import * as Prompt from "@effect/ai/Prompt"
import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"
import { compact } from "./json.ts"
import { type Options, type Place, someOptions } from "./kept.ts"

export interface FileLike {
  readonly mediaType: string
  readonly fileName?: string | undefined
  readonly data: string | Uint8Array | URL
}

type FilePlace = Extract<Place, { readonly type: "file" }>

/** What of a file has no place in an image of ours. */
export const filePlace = ({ data, fileName, mediaType }: FileLike, options: Options): FilePlace =>
  compact({
    type: "file" as const,
    mediaType: data instanceof Uint8Array || mediaType === anyImage ? undefined : mediaType,
    fileName,
    isText: typeof data === "string" ? true : undefined,
    options: someOptions(withoutDetail(options))
  })

/** An address does not tell what is there. */
const anyImage = "image/*"

/** Writes an image of ours as theirs. Their providers take bytes and addresses, but not always text. */
export const toFile = (
  image: Message.ImagePart,
  place: FilePlace | undefined
): Either.Either<Prompt.FilePart, string> =>
  Either.map(dataOf(image.source, place?.isText ?? false), (data) =>
    Prompt.makePart("file", {
      ...compact({ fileName: place?.fileName }),
      mediaType: place?.mediaType ?? (image.source.type === "base64" ? image.source.mediaType : anyImage),
      data,
      options: withDetail(place?.options, image.detail)
    }))

const dataOf = (
  source: Message.ImageSource,
  isText: boolean
): Either.Either<FileLike["data"], string> => {
  if (isText) return Either.right(source.type === "url" ? source.url : source.data)
  return source.type === "url"
    ? Either.try({
      try: () => new URL(source.url),
      catch: () => `the image ${JSON.stringify(source.url.slice(0, 80))} has no address; write one such as "https://…"`
    })
    : Either.mapLeft(
      Encoding.decodeBase64(source.data),
      () => "the data of an image is not base64; write Message.image({ mediaType, data })"
    )
}

const withDetail = (options: Options | undefined, detail: string | undefined): Options =>
  detail === undefined ? options ?? {} : { ...options, openai: { ...options?.["openai"], imageDetail: detail } }

const withoutDetail = (options: Options): Options => {
  const { openai, ...others } = options
  if (openai === undefined) return others
  const { imageDetail: _detail, ...rest } = openai
  return { ...others, openai: rest }
}

/** Reads a file of theirs as an image of ours, whatever its media type. */
export const fromFile = ({ data, mediaType }: FileLike, options: Options): Message.ImagePart => {
  const detail = options["openai"]?.["imageDetail"]
  const known = typeof detail === "string" ? { detail } : {}
  if (data instanceof Uint8Array) return Message.image({ mediaType, data: Encoding.encodeBase64(data) }, known)
  const text = data instanceof URL ? data.href : data
  return data instanceof URL || /^(https?|data):/i.test(text)
    ? Message.image(text, known)
    : Message.image({ mediaType, data: text }, known)
}
