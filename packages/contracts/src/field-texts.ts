// Describes each field of a message once. OpenAPI and the message reference show the same texts.
import type { z } from 'zod';

export interface FieldText {
  readonly description: string;
  readonly example: unknown;
}

const UNICODE = 'Must be well-formed Unicode, without lone surrogates.';
const FREE_FORM =
  'Any JSON object with at most 64 levels of nesting. Integers beyond 64 bits and numbers too large for a double are stored as strings with the same digits. Lone surrogates are stored as U+FFFD.';
const TYPE_OF_ID = (id: string) => `The system that issued \`${id}\`. Without a type, the id is untyped.`;

export const CONTEXT_FIELD_TEXTS = {
  library: { description: 'Name of the library that sends the message.', example: 'playline-web' },
  libraryVersion: { description: 'Version of the library or of the game build.', example: '1.0.0' },
  userAgent: { description: 'User agent of the browser or engine.', example: 'Mozilla/5.0' },
  locale: { description: 'Language and region that the player selected.', example: 'de-DE' },
  timezone: { description: 'IANA time zone of the device.', example: 'Europe/Berlin' },
  screen: { description: 'Screen size in pixels.', example: '1920x1080' },
  screenDensity: { description: 'Device pixels per pixel.', example: 2 },
  pageUrl: { description: 'Complete URL of the page.', example: 'https://game.example/play?level=7' },
  pagePath: { description: 'Path of the page.', example: '/play' },
  pageReferrer: { description: 'URL of the previous page. May be empty.', example: 'https://search.example/' },
  pageTitle: { description: 'Title of the page. May be empty.', example: 'Play' },
  browserLanguage: { description: 'Preferred language of the browser.', example: 'de' },
} as const satisfies Record<string, FieldText>;

export const MESSAGE_FIELD_TEXTS = {
  type: {
    description: 'What the message reports. The type decides which other fields are required.',
    example: 'track',
  },
  messageId: {
    description:
      'A UUID that the client creates once per message and keeps when it resends the message. Copies with the same id, type, time, name and owner are stored once.',
    example: '6f1c1f0e-8c2a-4e0b-9d5e-0c6a7b1d2e3f',
  },
  eventTimestamp: {
    description:
      'When the event happened, as an RFC 3339 timestamp with `Z` or an offset and up to 9 fractional digits. Set it when the event happens, not when the message is sent.',
    example: '2026-11-28T16:42:06.902Z',
  },
  anonymousId: {
    description: `The id of an installation or browser, created by the client on first start. ${UNICODE}`,
    example: 'b2c7e4f0-visitor',
  },
  deviceId: { description: 'The id of the device. Stored only; never joins persons.', example: 'device-81f2' },
  sessionId: { description: 'The id of a play session, shared by all of its messages.', example: 'session-0042' },
  context: { description: 'Where the message was created: library, page and device.', example: null },
  eventName: {
    description:
      'Name of the event, such as `level_complete`. For `page` and `screen`, the name of the page or screen.',
    example: 'level_complete',
  },
  properties: { description: `Details of the event. ${FREE_FORM}`, example: { level: 7, seconds: 93.5 } },
  userId: {
    description: `The id of the player in the system that \`identityType\` names. ${UNICODE}`,
    example: '76561198000000000',
  },
  identityType: { description: TYPE_OF_ID('userId'), example: 'steam' },
  traits: {
    description: `Facts about the player, such as the plan. An object replaces all stored traits; absent traits change nothing. ${FREE_FORM}`,
    example: { plan: 'free' },
  },
  fromId: { description: `The id that is already known. ${UNICODE}`, example: '76561198000000000' },
  fromType: {
    description: `${TYPE_OF_ID('fromId')} If it is absent and \`fromId\` equals \`anonymousId\`, the anonymous identity is linked.`,
    example: 'steam',
  },
  toId: {
    description: `The id that belongs to the same person as \`fromId\`. Must differ from \`fromId\`. ${UNICODE}`,
    example: 'player@game.example',
  },
  toType: { description: TYPE_OF_ID('toId'), example: 'email' },
  surface: { description: 'Where the game runs.', example: 'web' },
  consentLevel: {
    description: 'Consent of the player when the event happened. Stored with the event; never causes a rejection.',
    example: 'full',
  },
  test: { description: 'True marks test traffic, which analysts can exclude.', example: false },
} as const satisfies Record<string, FieldText>;

/** Adds the description and the example of each field to its schema. */
export function describeFields<S extends Record<string, z.ZodType>>(
  texts: Readonly<Record<keyof S, FieldText>>,
  shape: S,
): S {
  const described = Object.entries(shape).map(([name, schema]) => {
    const { description, example } = texts[name] as FieldText;
    return [name, schema.meta(example === null ? { description } : { description, examples: [example] })];
  });
  return Object.fromEntries(described) as S;
}
