import type { ErrorCode } from '@playline/errors';
import type { z } from 'zod';

/** What every form of the documentation is made of: one operation as data. */
export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly summary: string;
  /** Paragraphs of plain text. */
  readonly description: readonly string[];
  readonly key: KeyKind;
  /** What a form asks before it sends; null when nothing is destroyed. */
  readonly caution: Caution | null;
  readonly query: readonly QueryParameter[];
  readonly body: BodySpec | null;
  /** In rising order of status. */
  readonly answers: readonly AnswerSpec[];
  /** The first one is what a reader tries first. */
  readonly examples: readonly Example[];
}

export type KeyKind = 'publishable' | 'secret';

/** A question, what follows from a yes, and the word for that yes. */
export interface Caution {
  readonly question: string;
  readonly consequence: string;
  readonly consent: string;
}

export interface QueryParameter {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: z.ZodType;
}

export interface BodySpec {
  readonly description: string;
  readonly schema: z.ZodType;
}

export interface AnswerSpec {
  readonly status: number;
  readonly description: string;
  /** Of the body when it is no envelope; null when there is none. */
  readonly schema: z.ZodType | null;
  /** Codes of the envelope with this status; empty when there is no envelope. */
  readonly codes: readonly ErrorCode[];
  readonly headers: readonly HeaderSpec[];
}

/** A header that the answer always carries. */
export interface HeaderSpec {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>> & { readonly pattern?: string };
}

/** A request and the answer to it. A test sends every one of them. */
export interface Example {
  /** Unique among all examples; kebab case. */
  readonly name: string;
  readonly title: string;
  /** When the service does not fare as usual. */
  readonly situation?: Situation;
  readonly request: ExampleRequest;
  readonly answer: ExampleAnswer;
}

/** Full: there is no room for another body. Broken: the brokers acknowledge nothing. */
export type Situation = 'full' | 'broken';

export interface ExampleRequest {
  readonly method: Operation['method'];
  /** With its query. */
  readonly target: string;
  /** A value may be `KEY_OF.publishable` or `KEY_OF.secret`, which each form replaces by its own placeholder. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface ExampleAnswer {
  readonly status: number;
  /** Those worth showing. */
  readonly headers: Readonly<Record<string, string>>;
  /** Null when the answer has none. */
  readonly body: Readonly<Record<string, unknown>> | null;
}

/** Stand for the reader's own keys. */
export const KEY_OF: Readonly<Record<KeyKind, string>> = {
  publishable: '{{publishableKey}}',
  secret: '{{secretKey}}',
};

/** What the documentation knows of the deployment. */
export interface DocsSettings {
  /** Without a slash at its end. */
  readonly publicUrl: string;
  readonly headerPrefix: string;
}

/** Names of the key headers of a deployment. */
export function keyHeadersOf({ headerPrefix }: DocsSettings): Readonly<Record<KeyKind, string>> {
  return { publishable: `${headerPrefix}-publishable-key`, secret: `${headerPrefix}-api-key` };
}

/** Path of the page that explains a code of the envelope. */
export const errorPath = (code: ErrorCode): string => `/docs/errors/${code}`;

/** Path of the page that explains why a message was refused. */
export const rejectionPath = (code: string): string => `/docs/rejections/${code}`;
