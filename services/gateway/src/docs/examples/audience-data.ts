import { type Example, envelope, success } from '@playline/api-docs';
import { type ExampleContext, headersWith, KEY_OF } from './context.ts';

const TARGET = '/v1/audience/data';

/** Examples of DELETE /v1/audience/data. */
export function createEraseExamples(context: ExampleContext): Example[] {
  const headers = headersWith(context, 'secret');
  const [header = ''] = Object.keys(headers);
  const erase = (query: string, own = headers) =>
    ({ method: 'DELETE', target: TARGET + query, headers: own, body: null }) as const;
  return [
    {
      name: 'erase-visitor',
      title: 'Everything about a visitor',
      request: erase('?anonymousId=b2c7e4f0-visitor'),
      answer: success(202, null, {
        'x-erasure-id': '0192f3a4-5b6c-7d8e-9f00-112233445566',
        'x-erasure-identity': 'anonymousId=b2c7e4f0-visitor',
      }),
    },
    {
      name: 'erase-user',
      title: 'Everything about a user, of whichever identity type',
      request: erase('?userId=76561198000000000'),
      answer: success(202, null, {
        'x-erasure-id': '0192f3a4-5b6c-7d8e-9f00-112233445567',
        'x-erasure-identity': 'userId=76561198000000000',
      }),
    },
    {
      name: 'erase-both',
      title: 'Both identifiers at once',
      request: erase('?anonymousId=b2c7e4f0-visitor&userId=76561198000000000'),
      answer: envelope(context, 'VALIDATION_ERROR', { message: 'Give either anonymousId or userId, not both.' }),
    },
    {
      name: 'erase-without-key',
      title: 'No key',
      request: erase('?userId=76561198000000000', {}),
      answer: envelope(context, 'VALIDATION_ERROR', {
        message: `The header ${header} is missing.`,
        details: { header },
      }),
    },
    {
      name: 'erase-with-publishable-key',
      title: 'A publishable key, which cannot erase',
      request: erase('?userId=76561198000000000', { [header]: KEY_OF.publishable }),
      answer: envelope(context, 'UNAUTHORISED_REQUEST', { details: { header } }),
    },
  ];
}
