// How numbers, amounts and times are written: as the report writes them.

const THIN = "\u202f";
const SYMBOLS = "€$£¥₹₩₽₺₴₪฿₫₦"; // these stand before the number, everything else after it
const MINUS = "\u2212";

export function count(number) {
  return Number(number).toLocaleString("en-GB");
}

export function counted(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

function digits(number, least = 0, most = 2) {
  const text = Math.abs(number).toLocaleString("en-GB", { minimumFractionDigits: least, maximumFractionDigits: most });
  return number < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}

/** A number with three significant digits or so: 0.0761, 1.15, 84.2, 3,255. */
export function number(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0 || Number.isInteger(value)) return digits(value);
  return digits(value, 0, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4);
}

/** An amount as somebody says it: €5, 0, 1.70 USD. */
export function plainAmount(value, unit) {
  return amount(value, unit).replace(/\.00(?!\d)/, "");
}

/** An amount of money to the cent: €1.15, 1.15 USD, 5.00. */
export function amount(value, unit) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size >= 1000 ? digits(value, 0, 0) : digits(value, 2, size >= 0.1 || size === 0 ? 2 : 4);
  if (!unit) return text;
  return SYMBOLS.includes(unit) ? (text[0] === MINUS ? MINUS + unit + text.slice(1) : unit + text) : text + THIN + unit;
}

export function percent(share, places = 1) {
  return Number.isFinite(share) ? digits(share * 100, places, places) + THIN + "%" : "–";
}

export function bytes(size) {
  const steps = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
  const [step, name] = steps.find(([least]) => size >= least) ?? [1, "bytes"];
  return `${digits(size / step, 0, size / step < 10 && step > 1 ? 1 : 0)}${THIN}${name}`;
}

/** A time that passed or is left: 40 s, 3 min, 1 h 20 min. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 60) return `${Math.max(Math.round(seconds), 1)}${THIN}s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes}${THIN}min` : `${Math.floor(minutes / 60)}${THIN}h ${minutes % 60}${THIN}min`;
}

export function day(iso) {
  const made = new Date(iso);
  if (Number.isNaN(made.getTime())) return "";
  return made.toLocaleString("en-GB", { day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** The number that somebody typed, or null: "1.70", "1,70", "50 000", "1,250,000". */
export function readNumber(text) {
  let plain = String(text ?? "").replace(/[\s\u202f\u00a0'’_€$£]/g, "");
  if (/^-?\d+,\d{1,2}$/.test(plain)) plain = plain.replace(",", ".");
  else if (/^-?\d{1,3}(,\d{3})+(\.\d+)?$/.test(plain)) plain = plain.replaceAll(",", "");
  return /^-?(\d+\.?\d*|\.\d+)$/.test(plain) ? Number(plain) : null;
}

export function listWords(words, last = "and") {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} ${last} ${words.at(-1)}`;
}
