import { type Example, envelope, JSON_TYPE, success, toText } from '@playline/api-docs';
import { type ExampleContext, headersWith } from './context.ts';

const TARGET = '/v1/audience/tracking-consent';
const ANONYMOUS_ID = 'b2c7e4f0-visitor';

export function createReadConsentExamples(context: ExampleContext): Example[] {
  const headers = headersWith(context, 'publishable');
  const [header = ''] = Object.keys(headers);
  const get = (query: string) => ({ method: 'GET', target: TARGET + query, headers, body: null }) as const;
  return [
    {
      name: 'consent-not-set',
      title: 'A visitor without a choice',
      request: get('?anonymousId=9d0c-visitor'),
      answer: success(200, { status: 'not_set' }),
    },
    {
      name: 'consent-without-id',
      title: 'No anonymousId',
      request: get(''),
      answer: envelope(context, 'VALIDATION_ERROR', {
        message: 'anonymousId is required',
        details: { field: 'anonymousId' },
      }),
    },
    {
      name: 'consent-unknown-key',
      title: 'An unknown key: this operation answers 400',
      request: { ...get(`?anonymousId=${ANONYMOUS_ID}`), headers: { [header]: 'pk_unknown' } },
      answer: envelope(context, 'VALIDATION_ERROR', { details: { header } }),
    },
  ];
}

export function createWriteConsentExamples(context: ExampleContext): Example[] {
  const headers = headersWith(context, 'publishable', JSON_TYPE);
  const put = (body: unknown) => ({ method: 'PUT', target: TARGET, headers, body: toText(body) }) as const;
  return [
    {
      name: 'consent-given',
      title: 'A visitor agrees to everything',
      request: put({ anonymousId: ANONYMOUS_ID, status: 'full', source: 'cookie-banner' }),
      answer: success(204, null),
    },
    {
      name: 'consent-unset',
      title: 'not_set cannot be written',
      request: put({ anonymousId: ANONYMOUS_ID, status: 'not_set', source: 'cookie-banner' }),
      answer: envelope(context, 'VALIDATION_ERROR', {
        message: 'status is not one of none, anonymous, full',
        details: { field: 'status' },
      }),
    },
  ];
}
