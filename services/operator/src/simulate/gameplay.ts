import type { Random } from './random.ts';

/** A free-form object of a message. */
export type Properties = Record<string, unknown>;

const ITEMS = ['plasma_rifle', 'frontier_cape', 'battle_pass_s4', 'ore_booster', 'emote_wave'] as const;
const CURRENCIES = ['USD', 'EUR', 'JPY', 'BRL'] as const;
const BIOMES = ['dust_basin', 'ice_shelf', 'old_station', 'reactor'] as const;
const WEAPONS = ['plasma_rifle', 'coil_pistol', 'drill', 'none'] as const;

const EVENTS: Record<string, (random: Random) => Properties> = {
  session_started: (random) => ({ cold_start: random.chance(0.4), load_time_ms: random.integer(400, 9000) }),
  level_started: (random) => ({
    level: random.integer(1, 60),
    biome: random.pick(BIOMES),
    attempt: random.integer(1, 9),
  }),
  level_completed: (random) => ({
    level: random.integer(1, 60),
    biome: random.pick(BIOMES),
    duration_ms: random.integer(20_000, 900_000),
    stars: random.integer(0, 3),
    loot: Array.from({ length: random.integer(0, 4) }, () => ({
      item: random.pick(ITEMS),
      count: random.integer(1, 20),
    })),
  }),
  player_died: (random) => ({
    by: random.pick(WEAPONS),
    at: [random.next() * 900, random.next() * 900, random.next() * 40],
  }),
  purchase: (random) => ({
    order_id: random.hex(16),
    item: random.pick(ITEMS),
    price: random.integer(99, 9999) / 100,
    currency: random.pick(CURRENCIES),
    balance: { gold: random.integer(0, 100_000), gems: random.integer(0, 900) },
  }),
  matchmaking_finished: (random) => ({
    queue: random.pick(['ranked', 'casual']),
    waited_ms: random.integer(300, 90_000),
  }),
  frame_stats: (random) => ({
    fps_p50: random.integer(28, 165),
    fps_p01: random.integer(9, 60),
    memory_mb: random.integer(900, 7000),
    gpu: 'Radeon RX 7800 XT ✦ “Vulkan”',
    stalls: Array.from({ length: random.integer(0, 8) }, () => random.integer(17, 900)),
  }),
};
const EVENT_NAMES = Object.keys(EVENTS);

/** An event of the game: a name and its properties, sometimes none. */
export function pickEvent(random: Random): { eventName: string; properties: Properties | undefined } {
  const eventName = random.pick(EVENT_NAMES);
  if (random.chance(0.05)) return { eventName, properties: undefined };
  return { eventName, properties: { ...EVENTS[eventName]!(random), build: '4.2.1-8842', match_id: random.hex(32) } };
}

/** Traits of a user in an identify. */
export function pickTraits(random: Random): Properties {
  return {
    level: random.integer(1, 60),
    guild: random.pick(['Nomads', 'Čeští Vlci', '夜の狼', null]),
    beta: random.chance(0.2),
  };
}
