import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { type FuzzBody, idOf } from './bodies.ts';

/** Contract, "Body limits". */
const BATCH_BYTES_MAX = 1 << 20;

/** An answer as received. */
export interface FuzzAnswer {
  status: number;
  text: string;
}

/** What one answer says. */
export interface Verdict {
  /** Faults of the answer; empty when there are none. */
  faults: string[];
  /** Ids of accepted messages, and of rejected ones. */
  accepted: string[];
  rejected: string[];
}

interface MessagesResponse {
  success: boolean;
  accepted: number;
  rejected: number;
  rejections: { messageId: string }[];
}

/** Checks the answer to one body by the contract alone. */
export type Judge = (body: FuzzBody, answer: FuzzAnswer) => Verdict;

/** @param openapi the document that the gateway serves */
export function createJudge(openapi: object): Judge {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(openapi, 'openapi');
  const shapes = new Map<number, ValidateFunction>();
  for (const status of [200, 400, 401, 429, 500]) {
    const $ref = `openapi#/paths/~1v1~1audience~1messages/post/responses/${status}/content/application~1json/schema`;
    shapes.set(status, ajv.compile({ $ref }));
  }
  return (body, { status, text }) => {
    const parsed = parseJson(text);
    const shape = shapes.get(status);
    const faults: string[] = [];
    if (status >= 500 || status === 429) faults.push(`status ${status}`);
    if (shape === undefined) faults.push(`status ${status} is not documented`);
    else if (!shape(parsed)) faults.push(`not as documented: ${ajv.errorsText(shape.errors)}`);
    const verdict = faults.length > 0 ? nothing : judgeBatch(body, status, parsed as MessagesResponse);
    return { ...verdict, faults: [...faults, ...verdict.faults] };
  };
}

const nothing: Verdict = { faults: [], accepted: [], rejected: [] };

function judgeBatch({ messages, text }: FuzzBody, status: number, answer: MessagesResponse): Verdict {
  if (messages === null) return status === 200 ? { ...nothing, faults: ['accepted what is no batch'] } : nothing;
  if (answer.accepted === undefined) {
    const refused = Buffer.byteLength(text) > BATCH_BYTES_MAX;
    return refused ? nothing : { ...nothing, faults: ['refused a batch as a whole'] };
  }
  const named = new Set(answer.rejections.map(({ messageId }) => messageId.toLowerCase()));
  const ids = messages.map(idOf).filter((id) => id !== null);
  const accepted = ids.filter((id) => !named.has(id));
  const faults: string[] = [];
  if (answer.accepted + answer.rejected !== messages.length) faults.push('accepted + rejected is not what was sent');
  if (answer.success !== answer.accepted > 0) faults.push('success is not accepted > 0');
  if ((status === 200) !== answer.success) faults.push(`status ${status} with success ${answer.success}`);
  if (accepted.length !== answer.accepted)
    faults.push(`${accepted.length} ids that no rejection names, ${answer.accepted} accepted`);
  return { faults, accepted, rejected: ids.filter((id) => named.has(id)) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
