//! Sequences, whose lists count as memory if a run makes them.

use super::{Value, ValueType};
use crate::error::{Error, Result};
use crate::tensor::{Counted, Memory, Tensor};
use std::sync::Arc;

/// Values of one type, in order.
#[derive(Clone, PartialEq, Eq)]
pub struct Sequence {
    pub(super) element: Option<ValueType>,
    list: Arc<List>,
}

#[derive(Default)]
struct List {
    values: Vec<Value>,
    /// The memory of a list that a run made.
    counted: Option<Counted>,
}

impl PartialEq for List {
    fn eq(&self, other: &List) -> bool {
        self.values == other.values
    }
}

impl Eq for List {}

impl Sequence {
    /// A sequence of values of type `element`.
    ///
    /// # Errors
    /// If a value is of another type.
    pub fn new(element: ValueType, values: impl IntoIterator<Item = Value>) -> Result<Sequence> {
        let values: Vec<Value> = values.into_iter().collect();
        if let Some(at) = values.iter().position(|value| !value.is_of(&element)) {
            let other = values.get(at).map(Value::type_text).unwrap_or_default();
            return Err(
                Error::input(format!("element {at} of a sequence of {element} is of type {other}")).position(vec![at])
            );
        }
        Ok(Sequence { element: Some(element), list: Arc::new(List { values, counted: None }) })
    }

    /// An empty sequence whose element type is open.
    pub(crate) fn open() -> Sequence {
        Sequence { element: None, list: Arc::default() }
    }

    /// An empty sequence with room for `count` elements. Its list counts as memory of the run.
    pub(crate) fn with_room(element: Option<ValueType>, count: usize, memory: &Memory) -> Result<Sequence> {
        Ok(Sequence { element, list: Arc::new(List::with_room(count, memory)?) })
    }

    /// The type of the elements; `None` for an empty sequence that doesn't say it.
    pub fn element_type(&self) -> Option<&ValueType> {
        self.element.as_ref()
    }

    /// The elements.
    pub fn values(&self) -> &[Value] {
        &self.list.values
    }

    /// The number of elements that a change at `at` moves: all of them if others hold the sequence too.
    pub(crate) fn moved(&self, at: usize) -> usize {
        let len = self.values().len();
        if Arc::strong_count(&self.list) == 1 { len.saturating_sub(at) } else { len }
    }

    /// Inserts a value before the element at `at`, or at the end: in place if nobody else holds the sequence.
    pub(crate) fn insert(&mut self, at: usize, value: Value, memory: &Memory) -> Result<()> {
        match &self.element {
            Some(element) if !value.is_of(element) => {
                let text = format!("a value of type {} can't be in a sequence of {element}", value.type_text());
                return Err(Error::input(text));
            }
            Some(_) => {}
            None => self.element = value.value_type(),
        }
        let values = self.owned(1, memory)?;
        values.insert(at.min(values.len()), value);
        Ok(())
    }

    /// As [`Sequence::insert`], at the end.
    pub(crate) fn push(&mut self, value: Value, memory: &Memory) -> Result<()> {
        self.insert(usize::MAX, value, memory)
    }

    /// Removes the element at `at`, if there is one: in place if nobody else holds the sequence.
    pub(crate) fn remove(&mut self, at: usize, memory: &Memory) -> Result<()> {
        let values = self.owned(0, memory)?;
        if at < values.len() {
            values.remove(at);
        }
        Ok(())
    }

    /// The list, with room for `more` elements: a copy if others hold it.
    fn owned(&mut self, more: usize, memory: &Memory) -> Result<&mut Vec<Value>> {
        let len = self.values().len();
        let shared = Arc::get_mut(&mut self.list).is_none();
        if shared || self.list.counted.is_none() || self.list.values.capacity() - len < more {
            // Twice the room, so that many inserts take linear time.
            let room = if shared { len + more } else { (2 * len).max(4) };
            let mut list = List::with_room(room, memory)?;
            match Arc::get_mut(&mut self.list) {
                Some(own) => list.values.append(&mut own.values),
                None => list.values.extend_from_slice(&self.list.values),
            }
            self.list = Arc::new(list);
        }
        let own = Arc::get_mut(&mut self.list).map(|list| &mut list.values);
        own.ok_or_else(|| Error::bug("a new list is shared"))
    }

    /// As [`Value::recycle`].
    pub(super) fn recycle(self, memory: &Memory) {
        match Arc::try_unwrap(self.list) {
            Ok(list) => list.values.into_iter().for_each(|value| value.recycle(memory)),
            Err(list) => list.hand_out(memory),
        }
    }

    /// As [`Value::hand_out`].
    pub(super) fn hand_out(&self, memory: &Memory) {
        self.list.hand_out(memory);
    }

    /// As [`Value::adopt`].
    pub(super) fn adopt(&mut self, memory: &Memory, check: &mut dyn FnMut(&Tensor) -> Result<()>) -> Result<()> {
        let Some(list) = Arc::get_mut(&mut self.list) else { return Ok(()) };
        if list.counted.is_none() {
            list.counted = Some(memory.count(List::bytes(list.values.capacity()))?);
        }
        list.values.iter_mut().try_for_each(|value| value.adopt(memory, check))
    }
}

impl List {
    fn with_room(count: usize, memory: &Memory) -> Result<List> {
        let bytes = List::bytes(count);
        let counted = Some(memory.count(bytes)?);
        let mut values = Vec::new();
        let reserved = values.try_reserve_exact(count);
        reserved.map_err(|_| Error::out_of_memory("the list of a sequence", bytes as u64))?;
        Ok(List { values, counted })
    }

    /// Bytes of a list of `count` elements, each with a buffer of its own.
    fn bytes(count: usize) -> usize {
        count.saturating_mul(size_of::<Value>() + Tensor::BESIDE)
    }

    fn hand_out(&self, memory: &Memory) {
        self.counted.iter().for_each(|counted| counted.hand_out(memory));
        self.values.iter().for_each(|value| value.hand_out(memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::value::Optional;

    const ONE: u64 = (size_of::<Value>() + Tensor::BESIDE) as u64;

    fn empty(memory: &Memory) -> Sequence {
        Sequence::with_room(Some(DType::Float.into()), 0, memory).unwrap()
    }

    /// Has no memory of its own.
    fn value() -> Value {
        Tensor::from(Vec::<f32>::new()).into()
    }

    #[test]
    fn a_list_counts_until_its_last_holder_drops_it() {
        let memory = Memory::new(100 * ONE);
        let mut first = empty(&memory);
        assert_eq!(memory.live(), 0);
        for _ in 0..5 {
            first.push(value(), &memory).unwrap();
        }
        assert_eq!(memory.live(), 8 * ONE);
        let mut second = first.clone();
        assert_eq!(memory.live(), 8 * ONE);
        second.insert(0, value(), &memory).unwrap();
        assert_eq!((memory.live(), first.values().len(), second.values().len()), (14 * ONE, 5, 6));
        drop(first);
        assert_eq!(memory.live(), 6 * ONE);
        second.remove(0, &memory).unwrap();
        assert_eq!(memory.live(), 6 * ONE);
        Value::from(second).release(&memory);
        assert_eq!(memory.live(), 0);
    }

    #[test]
    fn a_list_that_leaves_counts_no_more() {
        let memory = Memory::new(100 * ONE);
        let mut own = empty(&memory);
        own.push(value(), &memory).unwrap();
        let (output, shared) = (Value::from(own.clone()), Value::from(own));
        output.hand_out(&memory);
        output.hand_out(&memory);
        assert_eq!(memory.live(), 0);
        shared.recycle(&memory);
        drop(output);
        assert_eq!(memory.live(), 0);
        // Another holder than the run has it: it leaves. Nobody has: it is freed.
        for hold in [true, false] {
            let mut own = empty(&memory);
            own.push(value(), &memory).unwrap();
            let held = hold.then(|| own.clone());
            Value::from(Optional::some(own.into())).recycle(&memory);
            assert_eq!(memory.live(), 0);
            drop(held);
        }
    }

    #[test]
    fn a_list_that_a_users_operator_made_is_counted_once() {
        let memory = Memory::new(3 * ONE);
        let own = Sequence::new(DType::Float.into(), [value()]).unwrap();
        let mut value = Value::from(own);
        value.adopt(&memory, &mut |_| Ok(())).unwrap();
        value.adopt(&memory, &mut |_| Ok(())).unwrap();
        assert_eq!(memory.live(), ONE);
        let many = Sequence::new(DType::Float.into(), vec![self::value(); 9]).unwrap();
        let error = Value::from(many).adopt(&memory, &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.place().limit, Some("run_bytes"));
        drop(value);
        assert_eq!(memory.live(), 0);
    }

    #[test]
    fn beyond_the_limit_nothing_changes() {
        let memory = Memory::new(11 * ONE);
        let mut list = empty(&memory);
        let error = (0..).find_map(|_| list.push(value(), &memory).err()).unwrap();
        assert_eq!(error.place().limit, Some("run_bytes"));
        assert_eq!((list.values().len(), memory.live()), (4, 4 * ONE));
        assert!(Sequence::with_room(None, usize::MAX, &memory).is_err());
        assert!(Sequence::with_room(None, usize::MAX, &Memory::new(u64::MAX)).is_err());
        let error = list.push(Tensor::scalar(1i64).into(), &memory).unwrap_err();
        assert_eq!(error.to_string(), "a value of type int64 can't be in a sequence of float32");
    }

    #[test]
    fn a_list_of_ones_own_changes_in_place() {
        let memory = Memory::new(u64::MAX);
        let mut list = Sequence::with_room(None, 8, &memory).unwrap();
        let place = list.values().as_ptr();
        for k in 0..8 {
            assert_eq!(list.moved(0), k);
            list.push(value(), &memory).unwrap();
        }
        list.remove(3, &memory).unwrap();
        list.remove(9, &memory).unwrap();
        assert_eq!((list.values().as_ptr(), list.values().len(), list.moved(7)), (place, 7, 0));
        assert_eq!(list.element_type(), Some(&DType::Float.into()));
        let other = list.clone();
        assert_eq!((list.moved(7), other.moved(7)), (7, 7));
        list.remove(0, &memory).unwrap();
        assert_eq!((other.values().as_ptr(), other.values().len(), list.values().len()), (place, 7, 6));
    }
}
