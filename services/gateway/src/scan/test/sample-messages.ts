/** Realistic messages for scan tests, as client libraries on several surfaces send them. */

const ANONYMOUS_ID = '7c1e7a44-55a1-4a0e-9d0c-6b1f3f3f5a10';
const USER_ID = 'email|5f0e7b1c9d3a4e2b8c6d';
const USER_AGENT =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36';
const WEB_CONTEXT = {
  library: '@playline/web',
  libraryVersion: '2.4.1',
  userAgent: USER_AGENT,
  locale: 'de-DE',
  timezone: 'Europe/Berlin',
  screen: '1920x1080',
  pageUrl: 'https://play.example.com/shop/items?category=weapons&sort=price',
  pagePath: '/shop/items',
  pageReferrer: '',
  pageTitle: 'Shop – Größere Auswahl',
  browserLanguage: 'de-DE',
};
const ENGINE_CONTEXT = {
  library: 'playline-unity',
  libraryVersion: '1.9.0',
  locale: 'ja-JP',
  timezone: 'Asia/Tokyo',
  screen: '2556x1179',
  screenDensity: 3,
};
const PROPERTIES = {
  itemId: 'sword-of-dawn',
  price: 12.5,
  currency: 'USD',
  tags: ['epic', 'limited'],
  position: { x: 102.25, y: -8, z: 0 },
  firstPurchase: false,
  coupon: null,
  level: 42,
};

/** One message of each kind that client libraries send, without id or time. */
const KINDS: readonly Record<string, unknown>[] = [
  {
    type: 'track',
    surface: 'web',
    eventName: 'item_purchased',
    anonymousId: ANONYMOUS_ID,
    userId: USER_ID,
    sessionId: 'b9b0c0d2-1f6e-4d7b-8d5f-0a52f0a1f9e1',
    context: WEB_CONTEXT,
    properties: PROPERTIES,
    consentLevel: 'full',
  },
  {
    type: 'page',
    surface: 'web',
    anonymousId: ANONYMOUS_ID,
    context: WEB_CONTEXT,
    properties: { tab: 'new', scroll: 0.75 },
    consentLevel: 'anonymous',
    test: false,
  },
  {
    type: 'track',
    surface: 'unity',
    eventName: 'レベル完了',
    anonymousId: ANONYMOUS_ID,
    userId: USER_ID,
    deviceId: '9f86d081884c7d659a2feaa0c55ad015',
    context: ENGINE_CONTEXT,
    properties: PROPERTIES,
    test: true,
  },
  {
    type: 'identify',
    surface: 'unreal',
    anonymousId: ANONYMOUS_ID,
    userId: '76561198000000000',
    identityType: 'steam',
    traits: { name: 'Zoë "Z" \\ 😀', vip: true },
    context: ENGINE_CONTEXT,
  },
  {
    type: 'alias',
    surface: 'unity',
    fromId: '76561198000000000',
    fromType: 'steam',
    toId: USER_ID,
    toType: 'passport',
    context: null,
  },
  {
    type: 'screen',
    surface: 'pixel',
    anonymousId: ANONYMOUS_ID,
    eventName: 'Hangar',
    context: { ...ENGINE_CONTEXT, pageTitle: 'A "quoted" title' },
    userId: null,
  },
];

/** The number of different kinds of sample messages. */
export const SAMPLE_KINDS: number = KINDS.length;

/** Creates sample message number `index`. The first is about 940 bytes long; the average is 600. */
export function sampleMessage(index: number, nowMs: number): Record<string, unknown> {
  const messageId = `0192f1c0-7b3a-7c4d-8e5f-${index.toString(16).padStart(12, '0')}`;
  const eventTimestamp = new Date(nowMs - index * 1000).toISOString();
  return { messageId, eventTimestamp, ...KINDS[index % SAMPLE_KINDS] };
}

export function sampleBody(messages: number, nowMs: number): string {
  return JSON.stringify({ messages: Array.from({ length: messages }, (_, index) => sampleMessage(index, nowMs)) });
}
