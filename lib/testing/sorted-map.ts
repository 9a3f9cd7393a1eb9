/** A map whose keys are in the order of their UTF-16 units, as the keys of a table. */
export class SortedMap<Value> {
  readonly #values = new Map<string, Value>();
  readonly #keys: string[] = [];

  get size(): number {
    return this.#keys.length;
  }

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: Value): void {
    if (!this.#values.has(key)) this.#keys.splice(this.#indexOf(key), 0, key);
    this.#values.set(key, value);
  }

  delete(key: string): void {
    if (this.#values.delete(key)) this.#keys.splice(this.#indexOf(key), 1);
  }

  /** The entries from this key on. The map must not change meanwhile. */
  *from(key: string): Generator<readonly [string, Value]> {
    for (let index = this.#indexOf(key); index < this.#keys.length; index += 1) {
      const found = this.#keys[index] as string;
      yield [found, this.#values.get(found) as Value];
    }
  }

  /** The position of the first key that is not less. */
  #indexOf(key: string): number {
    let [low, high] = [0, this.#keys.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#keys[middle] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
