import type { Surface } from '@playline/contracts';
import type { Random } from './random.ts';
import type { TimeStyle } from './timestamps.ts';

/** `context` of a message; page members are added message by message. */
export type Context = Record<string, string | number | null>;

const LOCALES = [
  { locale: 'en-US', timezone: 'America/New_York', offsetMinutes: -300 },
  { locale: 'de-DE', timezone: 'Europe/Berlin', offsetMinutes: 60 },
  { locale: 'pt-BR', timezone: 'America/Sao_Paulo', offsetMinutes: -180 },
  { locale: 'ja-JP', timezone: 'Asia/Tokyo', offsetMinutes: 540 },
  { locale: 'hi-IN', timezone: 'Asia/Kolkata', offsetMinutes: 330 },
  { locale: 'ko-KR', timezone: 'Asia/Seoul', offsetMinutes: 540 },
] as const;

const BROWSERS = [
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
  'Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
] as const;

const ENGINES = {
  unity: ['UnityPlayer/6000.0.42f1 (UnityWebRequest/1.0, libcurl/8.10.1)', 'UnityPlayer/2022.3.60f1 (Android 15)'],
  unreal: ['Outlands/++UE5+Release-5.5-CL-40574608 Windows/10.0.26100.1.256.64bit', 'Outlands/++UE5+Release-5.4 Linux'],
} as const;

const LIBRARIES: Record<Surface, { library: string; versions: readonly string[] }> = {
  web: { library: 'audience-web', versions: ['2.4.1', '2.5.0'] },
  pixel: { library: 'audience-pixel', versions: ['1.9.3'] },
  unity: { library: 'audience-unity', versions: ['0.8.0', '0.9.2'] },
  unreal: { library: 'audience-unreal', versions: ['0.5.1', '0.6.0'] },
};

const SCREENS = ['1920x1080', '2560x1440', '3840x2160', '390x844', '1280x800'] as const;

/** The constant part of a device's context, and how the device writes its times. */
export function createContext(surface: Surface, random: Random): { context: Context; timeStyle: TimeStyle } {
  const place = random.pick(LOCALES);
  const { library, versions } = LIBRARIES[surface];
  const context: Context = {
    library,
    libraryVersion: random.pick(versions),
    userAgent: surface === 'unity' || surface === 'unreal' ? random.pick(ENGINES[surface]) : random.pick(BROWSERS),
    locale: place.locale,
    timezone: place.timezone,
    screen: random.pick(SCREENS),
  };
  if (surface !== 'pixel') context.screenDensity = random.pick([1, 1.5, 2, 2.625, 3]);
  if (surface === 'web' || surface === 'pixel') context.browserLanguage = place.locale;
  return { context, timeStyle: pickTimeStyle(surface, place.offsetMinutes, random) };
}

/** Browsers write `toISOString`; .NET's round-trip format has 7 digits and may carry the local offset. */
function pickTimeStyle(surface: Surface, offsetMinutes: number, random: Random): TimeStyle {
  if (surface === 'unity') return { digits: 7, offsetMinutes: random.chance(0.5) ? 'Z' : offsetMinutes };
  if (surface === 'unreal')
    return { digits: random.pick([0, 3]), offsetMinutes: random.chance(0.8) ? 'Z' : offsetMinutes };
  return { digits: 3, offsetMinutes: 'Z' };
}

const PAGES = [
  { path: '/', title: 'Outlands: the frontier is open' },
  { path: '/play', title: 'Play now' },
  { path: '/store/skins', title: 'Store: skins' },
  { path: '/leaderboard', title: 'Leaderboard' },
  { path: '/news/season-4-patch-notes', title: 'Season 4 patch notes' },
] as const;
const REFERRERS = ['', 'https://www.example.com/search?q=outlands+game', 'https://social.example/outlands'] as const;

/** Members of `context` that describe a page; title and referrer may be empty, as in browsers. */
export function pickPage(random: Random): Context {
  const page = random.pick(PAGES);
  const campaign = random.chance(0.3) ? `?utm_source=newsletter&utm_campaign=season-4&click=${random.hex(24)}` : '';
  return {
    pageUrl: `https://outlands.example${page.path}${campaign}`,
    pagePath: page.path,
    pageReferrer: random.pick(REFERRERS),
    pageTitle: random.chance(0.9) ? page.title : '',
  };
}
