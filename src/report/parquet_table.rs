//! A flat table as a Parquet file of one row group, each column optional.

use super::flat::{FlatCells, FlatTable};
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::sync::Arc;

/// The bytes of the file.
pub fn parquet_file(table: &FlatTable) -> Result<Vec<u8>, ParquetError> {
    let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema(table)?), properties)?;
    let mut group = file.next_row_group()?;
    for column in &table.columns {
        match &column.cells {
            FlatCells::Integers(values) => write::<Int64Type>(&mut group, values.iter().copied())?,
            FlatCells::Numbers(values) => write::<DoubleType>(&mut group, values.iter().copied())?,
            FlatCells::Flags(values) => write::<BoolType>(&mut group, values.iter().copied())?,
            FlatCells::Texts(values) => {
                let bytes = |text: &Option<String>| text.as_deref().map(ByteArray::from);
                write::<ByteArrayType>(&mut group, values.iter().map(bytes))?;
            }
        }
    }
    group.close()?;
    file.into_inner()
}

fn schema(table: &FlatTable) -> Result<Type, ParquetError> {
    let field = |column: &super::flat::FlatColumn| {
        let (physical, is_text) = match column.cells {
            FlatCells::Integers(_) => (Physical::INT64, false),
            FlatCells::Numbers(_) => (Physical::DOUBLE, false),
            FlatCells::Flags(_) => (Physical::BOOLEAN, false),
            FlatCells::Texts(_) => (Physical::BYTE_ARRAY, true),
        };
        let mut field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
        if is_text {
            field = field.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8);
        }
        field.build().map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<_, _>>()?;
    Type::group_type_builder("results").with_fields(fields).build()
}

/// Writes the next column. Each value has a level: 1 if it is there, 0 if not.
fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    let missing = || ParquetError::General("the schema has fewer columns than the table".to_string());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use serde_json::json;

    #[test]
    fn a_table_comes_back_from_its_file() {
        let table = FlatTable::of(&[
            json!({ "path": "größe", "n": 1, "x": 0.5, "is": true, "none": null }),
            json!({ "path": "b", "n": 2 }),
        ]);
        let file = SerializedFileReader::new(bytes::Bytes::from(parquet_file(&table).unwrap())).unwrap();
        let rows: Vec<String> = file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(
            rows,
            [
                "{path: \"größe\", is: true, n: 1, none: null, x: 0.5}",
                "{path: \"b\", is: null, n: 2, none: null, x: null}"
            ]
        );
        assert_eq!(
            SerializedFileReader::new(bytes::Bytes::from(parquet_file(&FlatTable::of(&[])).unwrap()))
                .unwrap()
                .num_row_groups(),
            1
        );
    }
}
